"""flatten2: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOp, GradOpDef, Input, OpDef, Output, dtype_of, normal_axis
from oprack.op.families import MKLDNN_DATA_TYPE, USE_MKLDNN

from oprack_tensor.dims import product


class Flatten2(OpDef, type="flatten2"):
    """Out is the matrix [product of dims before `axis`, product of the others] of X's elements."""

    X = Input("Tensor of any shape.")
    Out = Output("Matrix; LoD of X while the first dim stays.")
    XShape = Output("Empty, [0, dims of X]: carries X's shape and LoD to the gradient.", intermediate=True, extra=True)
    axis = Attr(1, "Where to cut, 0 ... rank of X.")
    use_mkldnn = USE_MKLDNN
    mkldnn_data_type = MKLDNN_DATA_TYPE
    inplace = {"X": "Out"}

    def infer_shape(ctx):
        dims, axis = ctx.dim("X"), ctx.attr("axis")
        if axis != len(dims):
            axis = normal_axis(ctx.op_type, axis, len(dims))
        out = (product(dims[:axis]), product(dims[axis:]))
        ctx.set_dim("Out", out)
        ctx.set_dim("XShape", (0, *dims))
        ctx.share_lod("X", "XShape")
        if dims and out[0] == dims[0]:
            ctx.share_lod("X", "Out")

    def make_grad(fwd):
        return GradOp(
            "flatten2_grad",
            XShape=fwd.output("XShape"),
            Out_grad=fwd.output_grad("Out"),
            X_grad=fwd.input_grad("X"),
            attrs=fwd.attrs,
        )


class Flatten2Grad(GradOpDef, type="flatten2_grad"):
    """X@GRAD is Out@GRAD in the shape of X."""

    Out_grad = Input("Gradient of Out.")
    XShape = Input("Carries the shape of X.")
    X_grad = Output("Shape and LoD of X.")
    axis = Attr(1, "As in flatten2.")
    use_mkldnn = USE_MKLDNN
    mkldnn_data_type = MKLDNN_DATA_TYPE
    inplace = {"Out@GRAD": "X@GRAD"}
    no_need_buffer_vars = ("XShape",)
    expected_kernel_type = dtype_of("Out@GRAD")

    def infer_shape(ctx):
        ctx.set_dim("X@GRAD", ctx.dim("XShape")[1:])
        ctx.share_lod("XShape", "X@GRAD")
