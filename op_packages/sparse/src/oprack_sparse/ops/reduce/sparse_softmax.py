"""sparse_softmax and its gradient."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext

from oprack_sparse.ops.unary._family import GradFromOut, Unary


class SparseSoftmax(Unary, type="sparse_softmax"):
    r"""$$out_i = e^{x_i} / \sum_j e^{x_j}$$ over the listed elements of each row; what is not listed takes no part."""

    axis = Attr(-1, "Dim whose elements compete; of CSR the last one.")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.axis("x")
        ctx.set_dim("out", ctx.dim("x"))


class SparseSoftmaxGrad(GradFromOut, of=SparseSoftmax):
    r"""$$x@GRAD_i = out_i (out@GRAD_i - \sum_j out_j\, out@GRAD_j)$$"""
