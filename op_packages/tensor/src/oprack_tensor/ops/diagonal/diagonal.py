"""diagonal and its gradient."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output

from oprack_tensor.ops.diagonal._family import OFFSET, diagonal_size, two_axes


class Diagonal(OpDef, type="diagonal"):
    r"""$$Out_{\dots, i} = Input_{\dots, i, \dots, i + offset, \dots}$$
    with i along axis1 and i + offset along axis2."""

    Input_ = Input("Tensor of rank 2 or more.")
    Out = Output("Input's shape without both dims, and the length of the diagonal; no LoD.")
    offset = OFFSET
    axis1 = Attr(0, "Dim of the rows.")
    axis2 = Attr(1, "Dim of the columns.")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, axes = ctx.dim("Input"), two_axes(ctx, "Input", "axis1", "axis2")
        size = diagonal_size(dims[axes[0]], dims[axes[1]], ctx.attr("offset"))
        ctx.set_dim("Out", [*(d for i, d in enumerate(dims) if i not in axes), size])


class DiagonalGrad(GradOpDef, of=Diagonal, shape_of="Input", linear=True):
    r"""$$Input@GRAD_{\dots, i, \dots, i + offset, \dots} = Out@GRAD_{\dots, i}$$ and 0 off the diagonal."""
