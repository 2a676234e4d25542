"""Numbers that a program makes of sizes, such as parts of a shape, as functions of the batch size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from oprack.desc import BlockDesc, OpDesc, ProgramDesc
from oprack.errors import OprackError
from oprack.op.desc_rules import infer_op
from oprack.op.info import OpInfo
from oprack.op.sbp import SbpContext, broadcast, partial_sum
from oprack.packs import op_for
from oprack.packs.manager import default_manager
from oprack.parallel.programs.facts import arguments, declared_attrs
from oprack.python.records import dataclass
from oprack.runtime import NaiveExecutor
from oprack.tensor import LoDTensor, Scope

_MOST = 4096
"""A tensor of more elements is no shape."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """Integers that are affine functions of the number of entries of a batch.

    Attributes:
        fixed: What they are without any entry.
        slope: What each entry adds.
    """

    fixed: np.ndarray
    slope: np.ndarray

    @property
    def varies(self) -> bool:
        """Whether any of them depends on the size of the batch."""
        return bool(self.slope.any())

    def at(self, entries: int) -> np.ndarray:
        """The integers for a batch of so many entries."""
        found: np.ndarray = self.fixed + self.slope * np.asarray(entries, self.slope.dtype)
        return found


def numbers_of_dims(shape: Sequence[int], batch_dim: int, entries: int) -> Numbers:
    """The numbers that the op of role dims_of writes.

    Args:
        shape: The shape of its input, for a batch of so many entries.
        batch_dim: The dim that has the entries; -1: none.
        entries: The number of entries.
    """
    slope = [n // entries if d == batch_dim else 0 for d, n in enumerate(shape)]
    fixed = [0 if d == batch_dim else n for d, n in enumerate(shape)]
    return Numbers(np.array(fixed, "int32"), np.array(slope, "int32"))


class Sizes:
    """The numbers of a block's variables, as far as they are known.

    Args:
        block: The block, with shapes for a batch of so many entries.
        constants: Variables whose values are known.
    """

    def __init__(self, block: BlockDesc, constants: Scope) -> None:
        self.block = block
        self.known: dict[str, Numbers] = {}
        self._executor = NaiveExecutor(prepared=False)
        for name in block.vars:
            var = constants.find_var(name)
            if var is not None and isinstance(var.value, LoDTensor) and _is_small(var.value.array):
                self.known[name] = Numbers(var.value.array, np.zeros_like(var.value.array))

    def values(self, entries: int) -> dict[str, np.ndarray]:
        """What is known for a batch of so many entries, by variable."""
        return {name: numbers.at(entries) for name, numbers in self.known.items()}

    def dims(self, op: OpDesc, batch_dim: int, entries: int) -> bool:
        """Take an op of role shape_of; returns False for any other, and for tensors with LoD or of unknown dims."""
        if op.type != op_for("shape_of"):
            return False
        var = self.block.find_var_recursive(op.input("Input")[0])
        if var is None or var.shape is None or var.lod_level or min(var.shape, default=0) < 0:
            return False
        self.known[op.output("Out")[0]] = numbers_of_dims(var.shape, batch_dim, entries)
        return True

    def compute(self, op: OpDesc, info: OpInfo) -> bool:
        """Compute what an op makes of known numbers; returns False where that is not known to be affine.

        Its rule of splitting says in which inputs it is linear. Of numbers that do not vary anything may be made.
        """
        ins = arguments(op.inputs)
        if not ins or info.sbp is None or any(name not in self.known for _, _, name in ins):
            return False
        varying = {slot for slot, _, name in ins if self.known[name].varies}
        group = self._linear(op, info, varying) if varying else ()
        if group is None:
            return False
        fixed = self._run(op, {name: self.known[name].fixed for _, _, name in ins})
        parts = {name: self.known[name].slope if slot in group else self.known[name].fixed for slot, _, name in ins}
        slope = self._run(op, parts) if varying else {name: np.zeros_like(v) for name, v in (fixed or {}).items()}
        if fixed is None or slope is None:
            return False
        self.known.update({name: Numbers(fixed[name], slope[name]) for name in fixed})
        return True

    def _linear(self, op: OpDesc, info: OpInfo, varying: set[str]) -> set[str] | None:
        """Inputs with the varying ones among them, in which the op is linear together; None where there are none."""
        dims: dict[str, list[Sequence[int] | None]] = {}
        for slot, _, name in (*arguments(op.inputs), *arguments(op.outputs)):
            var = self.block.find_var_recursive(name)
            dims.setdefault(slot, []).append(None if var is None else var.shape)
        assert info.sbp is not None
        attrs = dict(info.checker.check(declared_attrs(op, info), op.var_attrs())) if info.checker else dict(op.attrs)
        for signature in info.sbp(SbpContext(op.type, attrs, dims)):
            group = {slot for slot, sbp in signature.inputs.items() if sbp == partial_sum}
            others = [sbp for slot, sbp in signature.inputs.items() if slot not in group]
            if varying <= group and all(sbp == broadcast for sbp in others):
                return group
        return None

    def _run(self, op: OpDesc, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray] | None:
        """Outputs of the op, run alone; None when it fails, or they are no few integers."""
        program, scope = ProgramDesc(), Scope()
        block, copy = program.blocks[0], op.clone()
        block.ops.append(copy)
        for name, value in values.items():
            tensor = LoDTensor(value)
            block.create_var(name, dtype=tensor.dtype, shape=value.shape)
            scope.var(name).set(tensor)
        for _, _, name in arguments(op.outputs):
            var = self.block.find_var_recursive(name)
            block.create_var(name, dtype=None if var is None else var.dtype)
        try:
            infer_op(copy, block, default_manager().op_info(op.type))
            self._executor.run_prepared(self._executor.prepare(program), scope)
        except (OprackError, ArithmeticError, ValueError):
            return None
        info, found = default_manager().op_info(op.type), {}
        for slot, _, name in arguments(op.outputs):
            if info.proto.outputs[slot].intermediate:
                continue
            made = scope.find_var(name)
            if made is None or not isinstance(made.value, LoDTensor) or not _is_small(made.value.array):
                return None
            found[name] = made.value.array
        return found


def _is_small(array: np.ndarray) -> bool:
    return array.dtype.kind == "i" and array.size <= _MOST
