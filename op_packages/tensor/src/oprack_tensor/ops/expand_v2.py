"""expand_v2: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOp, GradOpDef, Input, OpDef, Output, dtype_of
from oprack.op.families import MKLDNN_DATA_TYPE, USE_MKLDNN
from oprack.types import AttrType

from oprack_tensor.dims import broadcast_dims, given_ints


class ExpandV2(OpDef, type="expand_v2"):
    """Out is X broadcast to `shape`, where -1 keeps a dim of X."""

    X = Input("Tensor of any shape.")
    Shape = Input("int32 or int64 [n], overrides `shape`.", dispensable=True)
    expand_shapes_tensor = Input("n one-element tensors, override `shape`.", dispensable=True, duplicable=True)
    Out = Output("X broadcast; LoD of X while the first dim stays.")
    shape = Attr([], "Shape of Out.", type=AttrType.INTS)
    use_mkldnn = USE_MKLDNN
    mkldnn_data_type = MKLDNN_DATA_TYPE
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx):
        dims = ctx.dim("X")
        shape = given_ints(ctx, "shape", "Shape", "expand_shapes_tensor", likely=len(dims))
        out = broadcast_dims(ctx.op_type, dims, shape)
        ctx.set_dim("Out", out)
        if dims and out and dims[0] == out[0]:
            ctx.share_lod("X", "Out")

    def make_grad(fwd):
        return GradOp(
            "expand_v2_grad",
            X=fwd.input("X"),
            Shape=fwd.input("Shape"),
            expand_shapes_tensor=fwd.input("expand_shapes_tensor"),
            Out_grad=fwd.output_grad("Out"),
            X_grad=fwd.input_grad("X"),
            attrs=fwd.attrs,
        )


class ExpandV2Grad(GradOpDef, type="expand_v2_grad"):
    """X@GRAD sums Out@GRAD over the dims that were broadcast."""

    X = Input("Only its shape is read.")
    Shape = Input("As in expand_v2; kept for the second gradient.", dispensable=True)
    expand_shapes_tensor = Input("As in expand_v2; kept for the second gradient.", dispensable=True, duplicable=True)
    Out_grad = Input("Gradient of Out.")
    X_grad = Output("Shape and LoD of X.")
    shape = Attr([], "As in expand_v2.", type=AttrType.INTS)
    use_mkldnn = USE_MKLDNN
    mkldnn_data_type = MKLDNN_DATA_TYPE
    no_need_buffer_vars = ("X", "Shape", "expand_shapes_tensor")
    expected_kernel_type = dtype_of("Out@GRAD")

    def infer_shape(ctx):
        ctx.set_dim("X@GRAD", ctx.dim("X"))
        ctx.share_lod("X", "X@GRAD")

    def make_grad(fwd):
        return GradOp(
            "expand_v2",
            X=fwd.output_grad("X@GRAD"),
            Shape=fwd.input("Shape"),
            expand_shapes_tensor=fwd.input("expand_shapes_tensor"),
            Out=fwd.input_grad("Out@GRAD"),
            attrs=fwd.attrs,
        )
