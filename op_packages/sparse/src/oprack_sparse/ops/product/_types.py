"""Type and shape rules of products."""

from __future__ import annotations

from oprack.op import InferShapeContext, InferVarTypeContext
from oprack.types import VarType

DENSE = VarType.LOD_TENSOR


def product_dims(ctx: InferShapeContext) -> tuple[int, ...]:
    """Dims of the product of x and y, matrices or batches of them."""
    x, y = ctx.dim("x"), ctx.dim("y")
    if not ctx.is_runtime and not (x and y):
        return ()
    rank = len(x) in (2, 3) and len(x) == len(y)
    ctx.require(rank, f"x has shape {list(x)} and y {list(y)}; expected two matrices, or two batches of them")
    fits = all(a == b or -1 in (a, b) for a, b in zip((x[-1], *x[:-2]), (y[-2], *y[:-2]), strict=True))
    ctx.require(
        fits, f"x has shape {list(x)} and y {list(y)}; expected as many columns of x as rows of y, and one batch"
    )
    return (*x[:-1], y[-1])


def product_kind(ctx: InferVarTypeContext) -> VarType:
    """A product is sparse where both factors are, in the layout of x."""
    return ctx.kind("x") if DENSE not in (ctx.kind("x"), ctx.kind("y")) else DENSE
