"""expand_as_v2: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOp, GradOpDef, Input, OpDef, Output, dtype_of
from oprack.types import AttrType

from oprack_tensor.dims import broadcast_dims


class ExpandAsV2(OpDef, type="expand_as_v2"):
    """Out is X broadcast to the shape of Y, or to `target_shape`."""

    X = Input("Tensor of any shape.")
    Y = Input("Gives the shape; its values are not read.", dispensable=True)
    Out = Output("X broadcast; no LoD.")
    target_shape = Attr([], "Shape of Out.", type=AttrType.INTS)
    no_need_buffer_vars = ("Y",)
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx):
        dims = ctx.dim("X")
        target = [None if d < 0 else d for d in ctx.dim("Y")] if ctx.has_input("Y") else ctx.attr("target_shape")
        ctx.set_dim("Out", broadcast_dims(ctx.op_type, dims, target))

    def make_grad(fwd):
        return GradOp(
            "expand_as_v2_grad",
            X=fwd.input("X"),
            Out_grad=fwd.output_grad("Out"),
            X_grad=fwd.input_grad("X"),
            attrs=fwd.attrs,
        )


class ExpandAsV2Grad(GradOpDef, type="expand_as_v2_grad"):
    """X@GRAD sums Out@GRAD over the dims that were broadcast."""

    X = Input("Only its shape is read.")
    Out_grad = Input("Gradient of Out.")
    X_grad = Output("Shape and LoD of X.")
    target_shape = Attr([], "As in expand_as_v2.", type=AttrType.INTS)
    no_need_buffer_vars = ("X",)
    expected_kernel_type = dtype_of("Out@GRAD")

    def infer_shape(ctx):
        ctx.set_dim("X@GRAD", ctx.dim("X"))
        ctx.share_lod("X", "X@GRAD")
