"""RecomputeOptimizer: another optimizer whose program computes values of the forward pass again for its gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import oprack
from oprack.autodiff import OpRole
from oprack.desc import BlockDesc, OpDesc
from oprack.errors import InvalidArgumentError, PreconditionNotMetError
from oprack.layers import Variable, unique_name
from oprack.types import AttrType, VarType

from oprack_optimizer.optimizers.base import Optimizer, Pair

_AGAIN = "@RECOMPUTED"
_NORMS = ("batch_norm", "sync_batch_norm")
"""Their results in training don't depend on the running means that they write, so that these may be read again."""


class RecomputeOptimizer:
    """Trains by another optimizer, and keeps of the forward pass only what is named (Chen et al., 2016), as in Fluid.

    Name some variables along the net by `_set_checkpoints`, for example the result of each block, before `minimize`.
    The variables between two of them are let go of in the forward pass and computed again before the first gradient op
    that reads them; those behind the last one stay. Dropout gets an op that draws its seed, so it drops the same
    elements both times; what other ops draw stays, as do the results of ops with blocks and of those that write
    variables which outlive a run, but for the running means of batch norm.

    Args:
        optimizer: The optimizer.
    """

    def __init__(self, optimizer: Optimizer) -> None:
        self._optimizer = optimizer
        self._checkpoints: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name == "_optimizer":  # not set yet
            raise AttributeError(name)
        return getattr(self._optimizer, name)

    def _set_checkpoints(self, checkpoints: Sequence[Variable | str]) -> None:
        """Say between which variables values are computed again.

        Args:
            checkpoints: Variables or their names, in any order.
        """
        self._checkpoints = [c if isinstance(c, str) else c.name for c in checkpoints]

    def backward(
        self,
        loss: Variable,
        startup_program: Any = None,
        parameter_list: Sequence[Any] | None = None,
        no_grad_set: Any = None,
    ) -> list[Pair]:
        """Append the gradient ops and those that compute again; see Optimizer.backward.

        Raises:
            PreconditionNotMetError: There are no checkpoints.
            InvalidArgumentError: A checkpoint is not computed by an op of the loss's block.
        """
        if not self._checkpoints:
            raise PreconditionNotMetError(
                "RecomputeOptimizer: no checkpoints are set; call _set_checkpoints([...]) with variables of the net "
                "before minimize"
            )
        block = loss.block
        segments = _segments(block, self._checkpoints)
        for ops in segments:
            _draw_seeds(block, ops)
        first = len(block.ops)
        pairs = self._optimizer.backward(loss, startup_program, parameter_list, no_grad_set)
        for ops in reversed(segments):
            _compute_again(block, first, ops, set(self._checkpoints))
        return pairs

    minimize = Optimizer.minimize


def _names(slots: Any) -> list[str]:
    return [name for names in slots.values() for name in names]


def _segments(block: BlockDesc, checkpoints: Sequence[str]) -> list[list[OpDesc]]:
    """The ops up to each checkpoint, without those up to the one before."""
    last = {name: k for k, op in enumerate(block.ops) for name in _names(op.outputs)}
    missing = [name for name in checkpoints if name not in last]
    if missing:
        raise InvalidArgumentError(
            f"RecomputeOptimizer: checkpoints {missing} are not computed by an op of block {block.idx}; expected "
            "variables of the net before the loss, such as results of layers"
        )
    segments, start = [], 0
    for stop in sorted({last[name] + 1 for name in checkpoints}):
        segments.append(block.ops[start:stop])
        start = stop
    return segments


def _draw_seeds(block: BlockDesc, ops: Sequence[OpDesc]) -> None:
    """Let dropouts take the seed that an op before them draws in each run."""
    for op in ops:
        slots = oprack.op_info(op.type).proto.inputs
        if op.type.startswith("dropout") and "Seed" in slots and not op.inputs.get("Seed"):
            if op.attrs.get("fix_seed") or op.attrs.get("is_test"):
                continue
            seed = block.create_var(unique_name.generate("dropout_seed"), dtype="int32", shape=(1,))
            draw = OpDesc("seed", {}, {"Out": [seed.name]})
            draw.set_attr("seed", 0, AttrType.INT)
            draw.set_attr("op_role", int(OpRole.FORWARD), AttrType.INT)
            block.ops.insert(next(k for k, other in enumerate(block.ops) if other is op), draw)
            op.inputs["Seed"] = [seed.name]
            op.edits += 1


def _stays(block: BlockDesc, op: OpDesc, place: int, written: dict[str, list[int]]) -> bool:
    """Whether the results of an op are kept, since it could not be run again, or not with the same results.

    Args:
        block: The block.
        op: The op.
        place: Its position.
        written: Of each variable, the positions of the forward ops that write it.
    """
    seeded = bool(op.inputs.get("Seed")) or op.attrs.get("fix_seed") or op.attrs.get("is_test")
    if any(True for _ in op.sub_blocks()) or ("seed" in oprack.op_info(op.type).proto.attrs and not seeded):
        return True
    names = {*_names(op.inputs), *_names(op.outputs)}
    if any((var := block.find_var(n)) is not None and var.type is not VarType.LOD_TENSOR for n in names):
        return True
    if op.type in _NORMS:
        return False
    lasting = any((var := block.find_var(n)) is not None and var.persistable for n in _names(op.outputs))
    return lasting or any(at >= place for n in _names(op.inputs) for at in written.get(n, ()))


def _compute_again(block: BlockDesc, first: int, ops: Sequence[OpDesc], kept: set[str]) -> None:
    """Let gradient ops read values of a segment that are computed before the first of them.

    Args:
        block: The block.
        first: Where its gradient ops begin.
        ops: The segment.
        kept: Variables that stay.
    """
    forward, backward = block.ops[:first], block.ops[first:]
    inside = {id(op) for op in ops}
    elsewhere = {n for op in forward if id(op) not in inside for n in _names(op.inputs)}
    written: dict[str, list[int]] = {}
    for place, op in enumerate(forward):
        for n in _names(op.outputs):
            written.setdefault(n, []).append(place)
    writers: dict[str, OpDesc] = {}
    for place, op in enumerate(forward):
        if id(op) in inside and not _stays(block, op, place, written):
            own = {n for n in _names(op.outputs) if len(written[n]) == 1} - kept - elsewhere
            writers |= {n: op for n in own if (var := block.find_var(n)) is not None and not var.persistable}
    read = {id(op): _read(op) & writers.keys() for op in backward}
    readers = [op for op in backward if read[id(op)]]
    if not readers:
        return
    needed, wanted = set[int](), [n for op in readers for n in read[id(op)]]
    while wanted:
        found = writers.get(wanted.pop())
        if found is not None and id(found) not in needed:
            needed.add(id(found))
            wanted += _names(found.inputs)
    at = next(k for k, op in enumerate(block.ops) if op is readers[0])
    block.ops[at:at] = [_copy(block, op, set(writers)) for op in ops if id(op) in needed]
    for op in readers:
        for name in read[id(op)]:
            op.rename_input(name, name + _AGAIN)


def _read(op: OpDesc) -> set[str]:
    """The variables of which an op reads more than the shape."""
    unread = oprack.op_info(op.type).no_need_buffer_vars
    return {n for slot, names in op.inputs.items() if slot not in unread for n in names}


def _copy(block: BlockDesc, op: OpDesc, again: set[str]) -> OpDesc:
    """The op once more, from and to the variables that are computed again; what else it writes goes nowhere."""
    copy = op.clone()
    for name in set(_names(op.inputs)) & again:
        copy.rename_input(name, name + _AGAIN)
    for name in set(_names(op.outputs)):
        var = block.find_var(name)
        if var is not None and not block.has_var(name + _AGAIN):
            block.create_var(name + _AGAIN, type=var.type, dtype=var.dtype, shape=var.shape, lod_level=var.lod_level)
        copy.rename_output(name, name + _AGAIN)
    copy.set_attr("op_role", int(OpRole.BACKWARD), AttrType.INT)
    return copy
