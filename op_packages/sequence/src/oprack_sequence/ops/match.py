"""Sequences against sequences, as models of search match queries with titles."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output


class MatchMatrixTensor(OpDef, type="match_matrix_tensor"):
    r"""$$Out^{(b)}_{t,i,j} = X^{(b)}_i \cdot W_{:,t,:} Y^{(b)\top}_j$$ for the rows i of sequence b of X and j of Y

    How well each pair of words matches, in dim_t ways (Match-SRNN, Wan et al., 2016).
    """

    X = Input("[rows, D] with LoD.")
    Y = Input("[rows, E] with as many sequences.")
    W = Input("[D, dim_t, E].")
    Out = Output("[sum of dim_t x rows of X x rows of Y, 1]; a sequence is one image.")
    Tmp = Output("X W, [rows of X x dim_t x E, 1].", stop_gradient=True)
    dim_t = Attr(1, "Ways of matching.").greater_than(0)

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_lod("X")
        ctx.require_lod("Y")
        x, y = ctx.require_rank("X", 2), ctx.require_rank("Y", 2)
        ctx.require_dims("W", (x[1], ctx.attr("dim_t"), y[1]), why="columns of X, dim_t, columns of Y")
        ctx.set_dim("Out", (-1, 1))
        ctx.set_lod_level("Out", 1)
        size = -1 if min(x[0], y[1]) < 0 else x[0] * ctx.attr("dim_t") * y[1]
        ctx.set_dim("Tmp", (size, 1))


class MatchMatrixTensorGrad(GradOpDef, of=MatchMatrixTensor, reads="X Y W Tmp Out@GRAD"):
    r"""With $$G^{(b)}_{t} = Out@GRAD^{(b)}_t$$: X@GRAD is the sum over t of G_t Y W_t^T, Y@GRAD that of G_t^T X W_t,
    and W@GRAD_t the sum over sequences of X^T G_t Y"""
