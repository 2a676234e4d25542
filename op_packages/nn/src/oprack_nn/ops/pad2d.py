"""pad2d and its gradient: all of the ops but their kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import REQUIRED, Attr, GradOp, GradOpDef, OpDef, dtype_of
from oprack.types import AttrType

from oprack_nn.ops._conv import layout_attr
from oprack_nn.ops._pad_spatial import infer_padded, pairs_2d


class _Attrs(OpDef):
    paddings = Attr(REQUIRED, "[top, bottom, left, right].", type=AttrType.INTS)
    pad_value = Attr(0.0, "Value of the new elements in mode constant.")
    mode = Attr("constant", "constant; reflect: mirror without the edge; edge: repeat the edge.").in_set(
        ("constant", "reflect", "edge")
    )
    data_format = layout_attr("NCHW")
    use_mkldnn = Attr(False, "Paddle: prefer the oneDNN kernel.", extra=True)


class Pad2D(_Attrs, type="pad2d"):
    """Pads H and W of images; an op of Paddle 1.x, pad3d in 2.x."""

    X = op.Input("[N, C, H, W], or [N, H, W, C] with data_format NHWC.")
    Paddings = op.Input("[4], int32; overrides the attribute.", dispensable=True)
    Out = op.Output("X with H and W padded.")
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx):
        infer_padded(ctx, "X", "Out", pairs_2d, 2)

    def make_grad(fwd):
        return GradOp(
            "pad2d_grad",
            X=fwd.input("X"),
            Paddings=fwd.input("Paddings"),
            Out_grad=fwd.output_grad("Out"),
            X_grad=fwd.input_grad("X"),
            attrs=fwd.attrs,
        )


class Pad2DGrad(_Attrs, GradOpDef, type="pad2d_grad"):
    """X@GRAD sums Out@GRAD over the copies of each element."""

    X = op.Input("X of the forward op; its values are not read.")
    Paddings = op.Input("[4], int32; overrides the attribute.", dispensable=True)
    Out_grad = op.Input("Shape of Out.")
    X_grad = op.Output("Shape of X.")
    no_need_buffer_vars = ("X",)
    expected_kernel_type = dtype_of("Out@GRAD")

    def infer_shape(ctx):
        ctx.set_dim("X@GRAD", ctx.dim("X"))
