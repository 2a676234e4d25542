"""Writes ops and variables of a Fluid program."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from oprack.desc import BlockDesc, OpDesc, ProgramDesc, VarDesc
from oprack.desc.attr_values import RULES
from oprack.errors import UnimplementedError, UnknownOpError
from oprack.op import OpInfo
from oprack.packs import op_info
from oprack.packs.manager import default_manager
from oprack.tensor import numpy_dtype
from oprack.types import AttrType, VarType, dtype_name

from oprack_onnx.values import HALF, Dims, Value

Inputs = Mapping[str, Value | Sequence[Value] | None]


class Writer:
    """A program that is being written.

    Attributes:
        program: The program.
        block: Where ops go now.
        parameters: Name -> array of what the model holds.
    """

    def __init__(self) -> None:
        self.program = ProgramDesc()
        self.block: BlockDesc = self.program.blocks[0]
        self.parameters: dict[str, np.ndarray] = {}
        self._used: set[str] = {"feed", "fetch"}
        self._constants: dict[tuple[Any, ...], Value] = {}

    # Variables --------------------------------------------------------------------------------------------------------
    def fresh(self, base: str) -> str:
        """A name that nothing else has."""
        name, number = base or "value", 0
        while name in self._used:
            number += 1
            name = f"{base}.{number}"
        self._used.add(name)
        return name

    def mark(self) -> tuple[int, int]:
        """How many ops the block has, and how many blocks there are: where what is written next begins."""
        return len(self.block.ops), len(self.program.blocks)

    def rename(self, value: Value, wanted: str, since: tuple[int, int]) -> Value:
        """A value of what was written since a mark, under the name that the model gives it."""
        if wanted == value.name or wanted in self._used:
            return value
        inner = [op for block in self.program.blocks[since[1] :] for op in block.ops]
        ops = [*self.block.ops[since[0] :], *inner]
        written = any(value.name in op.output_arg_names() for op in self.block.ops[since[0] :])
        if value.name not in self.block.vars or not written:
            return value
        self._used.add(wanted)
        var = self.block.vars.pop(value.name)
        var.name = wanted
        self.block.vars[wanted] = var
        for op in ops:
            for slots in (op.inputs, op.outputs):
                for slot, names in slots.items():
                    slots[slot] = [wanted if n == value.name else n for n in names]
        return Value(wanted, value.dtype, value.shape, value.constant, value.kind)

    def declare(
        self, base: str, dtype: VarType, shape: Dims | None = None, kind: VarType = VarType.LOD_TENSOR
    ) -> Value:
        """A new variable of the block."""
        name = self.fresh(base)
        self.block.vars[name] = VarDesc(name, kind, dtype, shape if kind is VarType.LOD_TENSOR else None)
        return Value(name, dtype, shape, kind=kind)

    def parameter(self, base: str, array: np.ndarray) -> Value:
        """A variable that the model holds."""
        name, block = self.fresh(base), self.program.blocks[0]
        dtype = _dtype(array)
        block.vars[name] = VarDesc(name, VarType.LOD_TENSOR, dtype, array.shape, persistable=True)
        self.parameters[name] = array
        return Value(name, dtype, array.shape, array)

    def constant(self, value: Any, dtype: VarType | str = VarType.INT64) -> Value:
        """A small constant: a number or a list."""
        array = np.asarray(value, numpy_dtype(dtype))
        key = (dtype_name(dtype), array.shape, array.tobytes())
        if key not in self._constants:
            self._constants[key] = self.parameter("constant", array)
        return self._constants[key]

    # Ops --------------------------------------------------------------------------------------------------------------
    def emit(
        self,
        op: str,
        inputs: Inputs,
        outputs: Mapping[str, Value | Sequence[Value]],
        attrs: Mapping[str, Any] | None = None,
        types: Mapping[str, AttrType] | None = None,
    ) -> None:
        """Append an op. Outputs that it insists on and that are not asked for get variables of their own."""
        desc = OpDesc(op)
        info = info_of(op)
        for slot, given in inputs.items():
            values = [given] if isinstance(given, Value) else list(given or ())
            if values:
                desc.inputs[slot] = [v.name for v in values]
        for slot, given in outputs.items():
            desc.outputs[slot] = [given.name] if isinstance(given, Value) else [v.name for v in given]
        for name, value in (attrs or {}).items():
            type_ = (types or {}).get(name)
            if type_ is None and info is not None and name in info.proto.attrs:
                type_ = info.proto.attrs[name].type
                value = fitted(value, type_)
            desc.set_attr(name, value, type_)
        for proto in info.proto.outputs.values() if info is not None else ():
            if proto.name not in desc.outputs and not (proto.dispensable or proto.extra):
                first = next(iter(desc.output_arg_names()), op)
                desc.outputs[proto.name] = [self.declare(f"{first}.{proto.name}", VarType.FP32).name]
        self.block.ops.append(desc)

    def run(
        self,
        op: str,
        inputs: Inputs,
        attrs: Mapping[str, Any] | None = None,
        *,
        out: str = "Out",
        dtype: VarType | None = None,
        shape: Dims | None = None,
        kind: VarType = VarType.LOD_TENSOR,
    ) -> Value:
        """Append an op with one output, of the dtype of the first input where none is given.

        16-bit floats of which the op has no kernel become float32 for it.
        """
        first = next((v for v in _flat(inputs)), None)
        wanted = dtype if dtype is not None else first.dtype if first is not None else VarType.FP32
        if first is not None and first.dtype in HALF and not has_kernel(op, first.dtype):
            wide = {slot: self.widened(given) for slot, given in inputs.items()}
            target = VarType.FP32 if wanted in HALF else wanted
            found = self.run(op, wide, attrs, out=out, dtype=target, shape=shape, kind=kind)
            return self.cast(found, wanted)
        value = self.declare(op, wanted, shape, kind)
        self.emit(op, inputs, {out: value}, attrs)
        return value

    def widened(self, given: Value | Sequence[Value] | None) -> Value | list[Value] | None:
        """What a slot is given, with 16-bit floats as float32."""
        if given is None:
            return None
        if isinstance(given, Value):
            return self.cast(given, VarType.FP32) if given.dtype in HALF else given
        return [self.cast(v, VarType.FP32) if v.dtype in HALF else v for v in given]

    # What many forms need ---------------------------------------------------------------------------------------------
    def cast(self, value: Value, dtype: VarType) -> Value:
        """The value with another dtype."""
        if value.dtype is dtype:
            return value
        if value.constant is not None and value.constant.size <= 4096:
            return self.parameter(f"{value.name}.cast", value.constant.astype(numpy_dtype(dtype)))
        attrs = {"in_dtype": int(value.dtype), "out_dtype": int(dtype)}
        return self.run("cast", {"X": value}, attrs, dtype=dtype, shape=value.shape)

    def reshape(self, value: Value, dims: Sequence[int]) -> Value:
        """The value in another shape; 0 stands for the dim as it is, -1 for what is left."""
        if value.constant is not None and value.name in self.parameters and 0 not in dims:
            return self.parameter(f"{value.name}.reshaped", value.constant.reshape(tuple(dims)))
        known = value.shape or ()
        shape = tuple(known[i] if d == 0 and i < len(known) else (-1 if d == 0 else d) for i, d in enumerate(dims))
        return self.run("reshape2", {"X": value}, {"shape": list(dims)}, shape=shape)

    def transpose(self, value: Value, order: Sequence[int]) -> Value:
        """The value with its axes in another order."""
        shape = None if value.shape is None else tuple(value.shape[i] for i in order)
        return self.run("transpose2", {"X": value}, {"axis": list(order)}, shape=shape)

    def binary(self, op: str, x: Value, y: Value, dtype: VarType | None = None) -> Value:
        """An element-wise op of two values."""
        attrs = {"axis": -1} if op.startswith("elementwise_") else {}
        return self.run(op, {"X": x, "Y": y}, attrs, dtype=dtype, shape=broadcast(x.shape, y.shape))

    def copy(self, value: Value, target: Value) -> None:
        """Write a value to a variable."""
        self.emit("assign", {"X": value}, {"Out": target})


def broadcast(a: Dims | None, b: Dims | None) -> Dims | None:
    """The broadcast of two shapes, -1 where it is not known."""
    if a is None or b is None:
        return None
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
    return tuple(y if x == 1 else x if y in (1, -1, x) else -1 for x, y in zip(a, b, strict=True))


def _flat(inputs: Inputs) -> list[Value]:
    found: list[Value] = []
    for given in inputs.values():
        found += [given] if isinstance(given, Value) else list(given or ())
    return found


@functools.cache
def info_of(op: str) -> OpInfo | None:
    """What the installed packs say of an op; None when none brings it (the executor then says which one does)."""
    try:
        return op_info(op)
    except UnknownOpError:
        return None


@functools.cache
def has_kernel(op: str, dtype: VarType) -> bool:
    """Whether the CPU has a kernel of an op for a dtype; an operator that runs itself takes all."""
    if info_of(op) is None:
        return True
    kernels = list(default_manager().kernel_map(op, "cpu"))
    return not kernels or any(not k.dtypes or dtype_name(dtype) in k.dtypes for k in kernels)


def fitted(value: Any, type_: AttrType) -> Any:
    """A value as an attribute of a type has it. Raises UnimplementedError when it can't be one."""
    rule = RULES[type_]
    try:
        return [rule.convert_one(v) for v in value] if rule.is_list else rule.convert_one(value)
    except (TypeError, ValueError) as error:
        raise UnimplementedError(f"{value!r:.80} is no value of an attribute of type {type_.name}") from error


def _dtype(array: np.ndarray) -> VarType:
    name = dtype_name(array.dtype)
    return next(v for v in VarType if _named(v) == name)


@functools.cache
def _named(dtype: VarType) -> str:
    from oprack.types import DTYPE_NAMES

    return DTYPE_NAMES.get(dtype, "")
