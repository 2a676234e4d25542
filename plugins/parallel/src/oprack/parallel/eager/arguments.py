"""What the arguments of a call with global tensors have to be."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.eager_tensor import Tensor
from oprack.eager_tensor.meta import TensorMeta
from oprack.errors import InvalidArgumentError
from oprack.interpreter.op_expr import OpExpr
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
