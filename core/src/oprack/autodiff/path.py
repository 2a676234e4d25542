"""Finds the ops and variables that take part in a gradient, and the route to name in errors."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from oprack.desc import BlockDesc, OpDesc
from oprack.types import EMPTY_VAR, VarType

_FLOATING = (VarType.FP16, VarType.BF16, VarType.FP32, VarType.FP64, VarType.COMPLEX64, VarType.COMPLEX128)
_BOOKKEEPING = (
    VarType.FEED_MINIBATCH,
    VarType.FETCH_LIST,
    VarType.STEP_SCOPES,
    VarType.LOD_RANK_TABLE,
    VarType.PLACE_LIST,
    VarType.READER,
)


def differentiable(block: BlockDesc, name: str) -> bool:
    """Whether a variable can have a gradient: it is, or may be, floating (arrays of tensors, unknown dtypes)."""
    if name == EMPTY_VAR:
        return False
    var = block.find_var_recursive(name)
    if var is None:  # nothing declares it, so it may have any dtype
        return True
    return var.type not in _BOOKKEEPING and (var.dtype is None or var.dtype in _FLOATING)


def outputs_of(op: OpDesc) -> list[str]:
    """Variables that an op writes."""
    return [n for n in op.output_arg_names() if n != EMPTY_VAR]


def inputs_of(op: OpDesc) -> list[str]:
    """Variables that an op reads."""
    return [n for n in op.input_arg_names() if n != EMPTY_VAR]


def influenced(block: BlockDesc, ops: Iterable[OpDesc], sources: Collection[str], no_grad: Collection[str]) -> set[str]:
    """Variables that depend on those of `sources` by paths that avoid `no_grad`, including those of `sources`."""
    reached = {n for n in sources if n not in no_grad}
    for op in ops:
        if any(n in reached for n in inputs_of(op)):
            reached.update(n for n in outputs_of(op) if n not in no_grad and differentiable(block, n))
    return reached


def path_to(
    ops: Sequence[OpDesc],
    targets: Collection[str],
    through: Collection[str],
    keeps: Callable[[OpDesc], Collection[str]],
) -> tuple[list[OpDesc], set[str]]:
    """Find the ops on paths to `targets` whose variables all lie in `through`.

    Args:
        ops: The ops of a block, in order.
        targets: Where paths end.
        through: The variables that paths may use.
        keeps: Returns the outputs that an op overwrites only in part; it counts as reading them, too.

    Returns:
        (ops on such paths, in order; variables on these paths).
    """
    relevant = set(targets)
    path = []
    for op in reversed(ops):
        if not any(n in relevant for n in outputs_of(op)):
            continue
        inputs = [n for n in inputs_of(op) if n in through]
        if inputs or (any(n in through for n in outputs_of(op)) and any(n in through for n in keeps(op))):
            path.append(op)
            relevant.update(inputs)
    return path[::-1], relevant


def route(ops: Sequence[OpDesc], start: OpDesc, targets: Collection[str]) -> str:
    """How `start` reaches a target: "relu -> y -> mean -> loss", for error messages."""
    # Compared by identity, since ops of a program may be equal.
    begin = next(i for i, op in enumerate(ops) if op is start)
    came_from: dict[str, tuple[str, str]] = {n: ("", start.type) for n in outputs_of(start)}
    for op in ops[begin + 1 :]:
        source = next((n for n in inputs_of(op) if n in came_from), None)
        if source is not None:
            for n in outputs_of(op):
                came_from.setdefault(n, (source, op.type))
    end = next((t for t in targets if t in came_from), None)
    if end is None:
        return start.type
    parts = [end]
    while True:
        source, op_type = came_from[parts[0]]
        parts.insert(0, op_type)
        if not source:
            return " -> ".join(parts)
        parts.insert(0, source)
