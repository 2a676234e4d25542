"""fill_diagonal_tensor and its gradient."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, Input, Output
from oprack.types import AttrType

from oprack_tensor.ops.diagonal._family import FillsDiagonal, FillsDiagonalGrad, diagonal_size, two_axes


class FillDiagonalTensor(FillsDiagonal, type="fill_diagonal_tensor"):
    r"""$$Out_{\dots, i, \dots, i + offset, \dots} = Y_{\dots, i}$$ and X elsewhere; Y gets no gradient,
    as in Paddle."""

    X = Input("Tensor of rank 2 or more.")
    Y = Input("X's shape without both dims, and the length of the diagonal.")
    Out = Output("Shape and LoD of X.")
    offset = Attr(0, "Which diagonal: 0 the main one, positive above it.", type=AttrType.LONG)
    dim1 = Attr(0, "Dim of the rows.")
    dim2 = Attr(1, "Dim of the columns.")
    inplace = {"X": "Out"}

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, axes = ctx.dim("X"), two_axes(ctx, "X", "dim1", "dim2")
        size = diagonal_size(dims[axes[0]], dims[axes[1]], ctx.attr("offset"))
        ctx.require_dims("Y", [*(d for i, d in enumerate(dims) if i not in axes), size], why=f"for X {list(dims)}")
        ctx.set_dim("Out", dims)
        ctx.share_lod("X", "Out")


class FillDiagonalTensorGrad(FillsDiagonalGrad, of=FillDiagonalTensor):
    """X@GRAD is Out@GRAD with zeros on the diagonal."""
