"""similarity_focus: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, Input, OpDef, Output, empty_grad
from oprack.types import AttrType


class SimilarityFocus(OpDef, type="similarity_focus"):
    r"""A mask of the greatest elements of slices of X, one for each row and column:

    each slice $T = X_{:, \dots, index, \dots}$ along `axis` is searched for its greatest element whose row and column
    are free yet, until rows or columns run out. Out is 1 at these places along all of `axis`, for any of the slices,
    else 0.
    """

    X = Input("[N, A, B, C]")
    Out = Output("Shape of X; 0 or 1.")
    axis = Attr(REQUIRED, "Dim of the slices: 1, 2 or 3.", type=AttrType.INT).in_set((1, 2, 3))
    indexes = Attr(REQUIRED, "Which slices.", type=AttrType.INTS)
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, indexes = ctx.require_rank("X", 4), ctx.attr("indexes")
        size = dims[ctx.attr("axis")]
        fits = len(indexes) > 0 and all(0 <= i and (size < 0 or i < size) for i in indexes)
        ctx.require(fits, f"indexes is {list(indexes)} but X has shape {list(dims)}; expected places below {size}")
        ctx.set_dim("Out", dims)
        ctx.share_lod("X", "Out")
