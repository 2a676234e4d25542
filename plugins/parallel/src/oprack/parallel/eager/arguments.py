"""What a call with global tensors takes, and the form in which it returns its outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oprack.eager_tensor import Tensor
from oprack.eager_tensor.meta import TensorMeta
from oprack.errors import InvalidArgumentError
from oprack.interpreter.op_expr import OpExpr, result_class
from oprack.parallel.layouts.layout import Placement, layout_of

Metas = tuple[TensorMeta | None, ...]


def shapes_of(given: Sequence[Tensor | None]) -> tuple[tuple[int, ...] | None, ...]:
    """Logical shapes of arguments, by which a call looks for its plan."""
    return tuple([None if a is None else a._logical_shape if a._meta.layout is not None else a.shape for a in given])


def common_placement(expr: OpExpr, metas: Metas, args: Sequence[Tensor | None]) -> Placement:
    """The placement of the arguments. Raises InvalidArgumentError where they lie on several, or on none."""
    placements = {layout.placement for m in metas if m is not None and (layout := layout_of(m)) is not None}
    if len(placements) > 1:
        raise InvalidArgumentError(
            f"op {expr.type}: its inputs lie on {' and '.join(map(repr, placements))}; expected one placement object: "
            "make it once with oprack.parallel.placement(...) and use it for all tensors"
        )
    for m, a in zip(metas, args, strict=True):
        if m is not None and m.layout is None and a is not None and a.size != 1:
            raise InvalidArgumentError(
                f"op {expr.type}: {a.describe()} is of this process alone, other inputs are global; say where it lies: "
                "x.to_global(placement, sbp), with from_whole=True when every rank has the same"
            )
    return placements.pop()


def formed(expr: OpExpr, made: Sequence[Tensor | None]) -> Any:
    """The outputs in the form that the expression asks for.

    Args:
        expr: The expression.
        made: Its outputs, flat.

    Returns:
        All of them, one, or a named tuple.
    """
    if expr.flat:
        return made
    by_slot, k = {}, 0
    for slot, flags in expr.outputs:
        by_slot[slot] = made[k : k + len(flags)]
        k += len(flags)
    protos = expr.proto.outputs
    fields = [by_slot[s] if protos[s].duplicable else by_slot[s][0] for s in expr.returned]
    if len(fields) == 1:
        return fields[0]
    return result_class(expr.type, tuple(expr.returned))(*fields) if fields else None
