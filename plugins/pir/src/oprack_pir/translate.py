"""Ops of PIR that the table has: each becomes one op of Fluid, with a conversion beside it where dtypes differ."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from oprack.desc import OpDesc
from oprack.errors import CorruptModelError, OprackError, UnimplementedError, UnknownOpError
from oprack.op import OpInfo
from oprack.packs import op_info
from oprack.types import AttrType, VarType

from oprack_pir.constants import constant_op, fitted
from oprack_pir.document import Operation
from oprack_pir.encoding import DTYPES, TensorType
from oprack_pir.table import Row
from oprack_pir.values import Constant, Frame, Value, Variables

MAX_CONSTANT = 1024
"""Numbers of a constant that becomes an attribute; longer ones stay tensors."""


class OpTranslator:
    """Writes ops by the table.

    Args:
        variables: Of the program.
        version: Of the format, for messages.
    """

    def __init__(self, variables: Variables, version: int) -> None:
        self.variables = variables
        self.version = version
        self._infos: dict[str, OpInfo | None] = {}

    def info(self, op_type: str) -> OpInfo | None:
        """What the installed packs say of an op; None when none brings it (the executor then says which one does)."""
        if op_type not in self._infos:
            try:
                self._infos[op_type] = op_info(op_type)
            except UnknownOpError:
                self._infos[op_type] = None
        return self._infos[op_type]

    def translate(self, op: Operation, row: Row, frame: Frame) -> None:
        """Append the op.

        Raises:
            UnimplementedError: Fluid's op can't do what the op says.
            CorruptModelError: The op contradicts its table.
        """
        where = f"op {op} (PIR version {self.version})"
        try:
            desc = OpDesc(row.op)
            operands = [self.variables.now(frame.find(number, where)) if number else None for number in op.operands]
            attrs = self._inputs(op, row, desc, operands, frame, where)
            self._attributes(op, row, desc, attrs, where)
            after = self._outputs(op, row, desc, operands, frame, where)
            frame.block.ops.append(desc)
            frame.block.ops.extend(after)
        except (CorruptModelError, UnimplementedError) as error:
            if str(error).startswith(where):
                raise
            raise type(error)(f"{where}: {error}") from None
        except OprackError as error:
            raise CorruptModelError(f"{where}: {error}") from error

    # Inputs -----------------------------------------------------------------------------------------------------------
    def _inputs(
        self, op: Operation, row: Row, desc: OpDesc, operands: Sequence[Value | None], frame: Frame, where: str
    ) -> dict[str, Any]:
        """Fill the input slots; returns attributes that arrived as constants."""
        count = len(row.inputs)
        if len(operands) > count + len(row.mutable):
            raise UnimplementedError(
                f"{where} has {len(operands)} operands; expected at most {count + len(row.mutable)}, by which Fluid's "
                f"{row.op} is written. A newer oprack-pir may know this form of the op"
            )
        for slot, value in zip(row.inputs, operands[:count], strict=False):
            if slot and value is not None:
                if slot in row.cast:
                    wanted = row.cast[slot]
                    value = self._cast(value, op.attrs.get("dtype") if wanted == "dtype" else DTYPES[wanted], frame)
                self._read(desc, slot, value)
        attrs: dict[str, Any] = {}
        for (pir, attr, slot, slots), operand in zip_longest(row.mutable, operands[count:]):
            if operand is not None:
                self._mutable(desc, (attr, slot, slots), operand, attrs, where)
            elif pir in op.attrs:
                attrs[attr] = op.attrs[pir]
        return attrs

    def _read(self, desc: OpDesc, slot: str, value: Value) -> None:
        names = [name for name in value.names if name is not None]
        info = self.info(desc.type)
        if info is not None and slot not in info.proto.inputs:
            raise UnimplementedError(f"{names} in slot {slot!r}; the installed {desc.type} has no such input")
        self.variables.hold(len(names))
        desc.inputs[slot] = names

    def _mutable(
        self, desc: OpDesc, home: tuple[str, str, str], value: Value, attrs: dict[str, Any], where: str
    ) -> None:
        """An argument that is an attribute when it is constant, else an input."""
        attr, slot, slots = home
        numbers = _numbers(value)
        info = self.info(desc.type)
        if numbers is not None and (info is None or attr in info.proto.attrs):
            self.variables.hold(len(numbers) if isinstance(numbers, list) else 1)
            attrs[attr] = numbers
        elif len(value.names) == 1 and slot and not value.items:
            self._read(desc, slot, value)
        elif slots:
            self._read(desc, slots, value)
            # the list has one tensor for each number; the attribute says how many there are
            attrs[attr] = [_number_or(item, -1) for item in value.items or (value,)]
        elif slot and len(value.items) == 1:
            self._read(desc, slot, value.items[0])
        elif info is not None and attr in info.proto.attrs and info.proto.attrs[attr].support_tensor:
            self._named(desc, attr, value)
        else:
            raise UnimplementedError(
                f"{where}: {attr!r} is a tensor that only a run knows, and Fluid's {desc.type} takes it as an "
                "attribute only; export the model with a fixed value"
            )

    def _named(self, desc: OpDesc, attr: str, value: Value) -> None:
        """An attribute that names the variables whose values it takes in a run."""
        names = [name for name in value.names if name is not None]
        self.variables.hold(len(names))
        if value.items:
            desc.set_attr(attr, names, AttrType.VARS)
        else:
            desc.set_attr(attr, names[0], AttrType.VAR)

    def _cast(self, value: Value, dtype: VarType | None, frame: Frame) -> Value:
        """The value, or each of a list, with another dtype."""
        if value.items:
            items = tuple(self._cast(item, dtype, frame) for item in value.items)
            return Value(tuple(name for item in items for name in item.names), value.type, items=items)
        found = value.constant.dtype if value.constant else getattr(value.type, "dtype", None)
        if dtype is None or found is dtype or not isinstance(value.type, TensorType):
            return value
        type = TensorType(value.type.kind, dtype, value.type.shape)
        name = self.variables.declare(frame, self.variables.fresh(f"{value.names[0]}.cast"), type)
        if value.constant is not None:
            known = Constant(value.constant.numbers, value.constant.scalar, dtype)
            frame.block.ops.append(constant_op(known, type.shape, name))
        else:
            frame.block.ops.append(cast_op(str(value.names[0]), name, value.type.dtype, dtype))
        return Value((name,), type)

    # Attributes -------------------------------------------------------------------------------------------------------
    def _attributes(self, op: Operation, row: Row, desc: OpDesc, found: dict[str, Any], where: str) -> None:
        self._plain(op, row, found, where)
        found |= row.set
        known = not any(slot in desc.inputs for _, _, *slots in row.mutable for slot in slots)
        for attr, like in row.flags_like.items():
            found[attr] = [1 if known else -1] * len(found.get(like) or ())
        for attr, slot in row.dtype_of.items():
            names = desc.input(slot)
            found[attr] = self.variables.dtype(names[0]) if names else None
        if row.backward_end in found:
            found[row.backward_end] = _backward_ends(found[row.backward_end], found.get("strides"), where)
        info = self.info(desc.type)
        for name, value in found.items():
            if value is not None:
                self._set(desc, name, value, info, where)
        if info is not None and "reduce_all" in info.proto.attrs and not desc.attr("reduce_all"):
            axes = next((desc.attr(name) for name in ("dim", "axis") if name in desc.attrs), None)
            desc.set_attr("reduce_all", axes == [])

    def _plain(self, op: Operation, row: Row, found: dict[str, Any], where: str) -> None:
        """Attributes of PIR by their names in Fluid."""
        mutable = {pir for pir, *_ in row.mutable}
        for pir, value in op.attrs.items():
            if pir in row.ignored or (pir in row.only and value == row.only[pir]):
                continue
            if pir in row.attrs and pir not in row.only:
                found[row.attrs[pir]] = value
            elif pir not in mutable:
                raise UnimplementedError(
                    f"{where}: attribute {pir!r} is {value!r:.80}; Fluid's {row.op} has none for it"
                    + (f", and does the same only for {row.only[pir]!r}" if pir in row.only else "")
                )

    def _set(self, desc: OpDesc, name: str, value: Any, info: OpInfo | None, where: str) -> None:
        if info is None:
            desc.set_attr(name, value, AttrType.INTS if value == [] else None)
            return
        proto = info.proto.attrs.get(name)
        if proto is None:
            raise UnimplementedError(
                f"{where}: attribute {name!r} is {value!r:.80}; the installed {desc.type} lacks it"
            )
        desc.set_attr(name, fitted(value, proto.type), proto.type)

    # Outputs ----------------------------------------------------------------------------------------------------------
    def _outputs(
        self, op: Operation, row: Row, desc: OpDesc, operands: Sequence[Value | None], frame: Frame, where: str
    ) -> list[OpDesc]:
        """Fill the output slots and define the results; returns conversions that follow the op."""
        after: list[OpDesc] = []
        info = self.info(desc.type)
        shared = self._shared(op, row, desc, operands, info)
        if len(op.results) > len(row.outputs):
            raise UnimplementedError(
                f"{where} has {len(op.results)} results; expected at most {len(row.outputs)}, by which Fluid's "
                f"{row.op} is written. A newer oprack-pir may know this form of the op"
            )
        for slot, (number, type) in zip(row.outputs, op.results, strict=False):
            if type is None:
                continue
            value = shared.get(slot)
            if value is None or value.type != type:
                value = self.variables.result(frame, number, type, op.name)
            else:
                value = self.variables.overwrite(value)
            frame.define(number, value, where)
            if not slot or (info is not None and slot not in info.proto.outputs):
                continue
            desc.outputs[slot] = self._written(value, row, frame, after)
        self._complete(desc, info, frame)
        return after

    def _shared(
        self, op: Operation, row: Row, desc: OpDesc, operands: Sequence[Value | None], info: OpInfo | None
    ) -> dict[str, Value]:
        """For an op in place: output slot -> the value whose memory it writes."""
        places = dict(row.alias)
        if not places and info is not None and op.name.endswith("_"):
            by_slot = {slot: place for place, slot in enumerate(row.inputs)}
            places = {out: by_slot[slot] for slot, out in info.inplace.items() if slot in by_slot}
        if not places and op.name.endswith("_") and row.outputs:
            places = {row.outputs[0]: 0}  # as nearly all of Paddle's ops in place
        found = ((out, operands[place]) for out, place in places.items() if place < len(operands))
        return {out: value for out, value in found if value is not None and not value.items}

    def _written(self, value: Value, row: Row, frame: Frame, after: list[OpDesc]) -> list[str]:
        names = [name for name in value.names if name is not None]
        type = value.type
        if not row.result_dtype or not isinstance(type, TensorType):
            return names
        given = TensorType(type.kind, DTYPES[row.result_dtype], type.shape)
        if given.dtype is type.dtype:
            return names
        name = self.variables.declare(frame, self.variables.fresh(f"{names[0]}.{row.result_dtype}"), given)
        after.append(cast_op(name, names[0], given.dtype, type.dtype))
        return [name]

    def _complete(self, desc: OpDesc, info: OpInfo | None, frame: Frame) -> None:
        """Variables for outputs that Fluid's op insists on and PIR's does not have."""
        for slot in info.proto.outputs.values() if info is not None else ():
            if slot.name not in desc.outputs and not (slot.dispensable or slot.extra):
                name = self.variables.fresh(f"{next(iter(desc.output_arg_names()), desc.type)}.{slot.name}")
                desc.outputs[slot.name] = [self.variables.declare(frame, name, None)]


def cast_op(source: str, target: str, given: VarType, wanted: VarType) -> OpDesc:
    """An op that converts a tensor to another dtype."""
    return OpDesc("cast", {"X": source}, {"Out": target}, {"in_dtype": int(given), "out_dtype": int(wanted)})


def _numbers(value: Value) -> Any:
    """What is known of a value, as an attribute holds it: a number or a list; None when it is not known."""
    if value.items:
        known = [_numbers(item) for item in value.items]
        flat = [n[0] if isinstance(n, list) and len(n) == 1 else n for n in known]
        return None if any(n is None or isinstance(n, list) for n in flat) else flat
    if value.constant is None or len(value.constant.numbers) > MAX_CONSTANT:
        return None
    return value.constant.numbers[0] if value.constant.scalar else list(value.constant.numbers)


def _number_or(value: Value, default: int) -> Any:
    known = _numbers(value)
    return default if known is None or isinstance(known, list) else known


def _backward_ends(ends: Any, strides: Any, where: str) -> Any:
    """The ends of a strided slice as Fluid has them, see rules.toml."""
    if not isinstance(ends, list) or not isinstance(strides, list):
        return ends
    found = []
    for end, stride in zip_longest(ends, strides, fillvalue=1):
        if stride < 0 and end == -1:
            raise UnimplementedError(f"{where}: an end of -1 with stride {stride}; Fluid reads that as no end")
        found.append(-1 if stride < 0 and end <= -(2**31) else end)
    return found
