"""index_sample: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import GradOp, GradOpDef, Input, OpDef, Output, dtype_of


class IndexSample(OpDef, type="index_sample"):
    r"""$$Out_{i,j} = X_{i, Index_{i,j}}$$"""

    X = Input("[n, m]")
    Index = Input("int32 or int64 [n, k].")
    Out = Output("[n, k]; LoD of Index.")
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx):
        (n, _), index = ctx.require_rank("X", 2), ctx.require_rank("Index", 2)
        ctx.require(n in (-1, index[0]) or index[0] == -1, f"X has {n} rows and Index {index[0]}; expected as many")
        ctx.set_dim("Out", index)
        ctx.share_lod("Index", "Out")

    def make_grad(fwd):
        return GradOp(
            "index_sample_grad",
            X=fwd.input("X"),
            Index=fwd.input("Index"),
            Out_grad=fwd.output_grad("Out"),
            X_grad=fwd.input_grad("X"),
        )


class IndexSampleGrad(GradOpDef, type="index_sample_grad"):
    """Adds each element of Out@GRAD to the place of X@GRAD that it came from."""

    X = Input("Only its shape is read.")
    Index = Input("As in index_sample.")
    Out_grad = Input("Gradient of Out.")
    X_grad = Output("Shape and LoD of X.")
    no_need_buffer_vars = ("X",)
    expected_kernel_type = dtype_of("Out@GRAD")

    def infer_shape(ctx):
        ctx.set_dim("X@GRAD", ctx.dim("X"))
        ctx.share_lod("X", "X@GRAD")
