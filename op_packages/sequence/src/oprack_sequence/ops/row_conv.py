"""row_conv: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import GradOp, GradOpDef, Input, OpDef, Output

from oprack_sequence.ops._infer import same_as, same_dim


class RowConv(OpDef, type="row_conv"):
    r"""Lookahead convolution, element by element: $$Out_t = \sum_{k=0}^{K-1} X_{t+k} \odot Filter_k$$

    Rows past the end of the sequence are zero.
    """

    X = Input("[N, D] with LoD, or [B, T, D].")
    Filter = Input("[K, D]: weights of this row and of K - 1 rows to come.")
    Out = Output("Shape and LoD of X.")

    def infer_shape(ctx):
        if len(ctx.require_rank("X", 2, 3)) == 2:
            ctx.require_lod("X")
        ctx.require_rank("Filter", 2)
        same_as(ctx, "X", "Out")

    def make_grad(fwd):
        return GradOp(
            "row_conv_grad",
            X=fwd.input("X"),
            Filter=fwd.input("Filter"),
            Out_grad=fwd.output_grad("Out"),
            X_grad=fwd.input_grad("X"),
            Filter_grad=fwd.input_grad("Filter"),
        )


class RowConvGrad(GradOpDef, type="row_conv_grad"):
    """Gradient of row_conv."""

    X = Input("As in row_conv.")
    Filter = Input("As in row_conv.")
    Out_grad = Input("Gradient of Out.")
    X_grad = Output("Shape of X, without LoD.")
    Filter_grad = Output("Shape of Filter.")

    def infer_shape(ctx):
        same_dim(ctx, "X", "X@GRAD")
        same_dim(ctx, "Filter", "Filter@GRAD")
