"""sparse_reshape and its gradient."""

from __future__ import annotations

import math

from oprack.op import REQUIRED, Attr, InferShapeContext, Input, OpDef, Output, dtype_of
from oprack.types import AttrType

from oprack_sparse.ops.shape._family import MovedGrad


class SparseReshape(OpDef, type="sparse_reshape"):
    r"""$$out_j = x_i$$ where i and j have the same place in row-major order; dense dims stay as they are."""

    x = Input("Sparse tensor.")
    ShapeTensor = Input("The dims, instead of `shape`.", dispensable=True)
    ShapeTensorList = Input("One-element tensors for the dims, instead of `shape`.", dispensable=True, duplicable=True)
    out = Output("Sparse tensor of x's layout.")
    shape = Attr(REQUIRED, "Dims of out; 0 keeps that of x, one may be -1.", type=AttrType.LONGS)
    expected_kernel_type = dtype_of("x")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.dim("x")
        if ctx.has_input("ShapeTensor") or ctx.has_input("ShapeTensorList"):
            if not ctx.is_runtime:
                return
            given = _given(ctx)
        else:
            given = list(ctx.attr("shape"))
        if not dims and not ctx.is_runtime:
            return
        ctx.set_dim("out", target_dims(ctx, dims, given))


def _given(ctx: InferShapeContext) -> list[int]:
    if ctx.has_input("ShapeTensor"):
        return [int(v) for v in ctx.value("ShapeTensor").reshape(-1)]
    return [int(ctx.scalar("ShapeTensorList", i)) for i in range(ctx.input_count("ShapeTensorList"))]


def target_dims(ctx: InferShapeContext, dims: tuple[int, ...], given: list[int]) -> list[int]:
    """The dims of the result, with 0 and -1 replaced by what they stand for where that is known."""
    kept = all(d != 0 or i < len(dims) for i, d in enumerate(given))
    ctx.require(kept and given.count(-1) <= 1, f"shape is {given}, x has shape {list(dims)}; expected one -1 at most")
    found = [dims[i] if d == 0 else d for i, d in enumerate(given)]
    if min(dims, default=0) < 0:
        return found
    size, rest = math.prod(dims), math.prod(d for d in found if d != -1)
    fits = size % rest == 0 if -1 in found and rest else size == rest
    ctx.require(fits, f"shape is {given}, x has shape {list(dims)}; expected as many elements")
    return [size // max(rest, 1) if d == -1 else d for d in found]


class SparseReshapeGrad(MovedGrad, of=SparseReshape, attrs=""):
    r"""$$x@GRAD_i = out@GRAD_j$$ where x lists an element."""
