"""What the arguments of a call with global tensors have to be."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.errors import InvalidArgumentError, UnimplementedError
from oprack.interpreter.op_expr import OpExpr
from oprack.parallel.layout import Placement
from oprack.tensor.eager_tensor import Tensor
from oprack.tensor.meta import TensorMeta

Metas = tuple[TensorMeta | None, ...]


def require_plain_writes(expr: OpExpr, metas: Metas) -> None:
    """Raise UnimplementedError where a call would write to an argument that has a gradient."""
    slots = [slot for slot, n in expr.inputs for _ in range(n)]
    for slot, m in zip(slots, metas, strict=True):
        if slot in expr.in_place and m is not None and m.grad:
            raise UnimplementedError(
                f"op {expr.type}: {slot} is a global tensor with a gradient, which can't be written in place; use what "
                "the call returns without in_place"
            )


def common_placement(expr: OpExpr, metas: Metas, args: Sequence[Tensor | None]) -> Placement:
    """The placement of the arguments. Raises InvalidArgumentError where they lie on several, or on none."""
    placements = {m.layout.placement for m in metas if m is not None and m.layout is not None}
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
