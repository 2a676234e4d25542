"""pad3d and its gradients: all of the ops but their kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import REQUIRED, Attr, GradOp, GradOpDef, OpDef, dtype_of
from oprack.types import AttrType

from oprack_nn.ops._conv import layout_attr
from oprack_nn.ops._pad_spatial import infer_padded, pairs_3d


class _Attrs(OpDef):
    paddings = Attr(REQUIRED, "[left, right, top, bottom, front, back].", type=AttrType.INTS)
    mode = Attr("constant", "constant; reflect: mirror without the edge; replicate: repeat the edge; circular.").in_set(
        ("constant", "reflect", "replicate", "circular")
    )
    value = Attr(0.0, "Value of the new elements in mode constant.")
    data_format = layout_attr("NCDHW")
    use_mkldnn = Attr(False, "Paddle: prefer the oneDNN kernel.", extra=True)


class Pad3D(_Attrs, type="pad3d"):
    """Pads D, H and W; images and sequences come with D or D and H of 1."""

    X = op.Input("[N, C, D, H, W], or [N, D, H, W, C] with data_format NDHWC.")
    Paddings = op.Input("[6], int32; overrides the attribute.", dispensable=True)
    Out = op.Output("X with D, H and W padded.")
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx):
        infer_padded(ctx, "X", "Out", pairs_3d, 3)

    def make_grad(fwd):
        return GradOp(
            "pad3d_grad",
            X=fwd.input("X"),
            Paddings=fwd.input("Paddings"),
            Out_grad=fwd.output_grad("Out"),
            X_grad=fwd.input_grad("X"),
            attrs=fwd.attrs,
        )


class Pad3DGrad(_Attrs, GradOpDef, type="pad3d_grad"):
    """X@GRAD sums Out@GRAD over the copies of each element."""

    X = op.Input("X of the forward op; its values are not read.")
    Paddings = op.Input("[6], int32; overrides the attribute.", dispensable=True)
    Out_grad = op.Input("Shape of Out.")
    X_grad = op.Output("Shape of X.")
    no_need_buffer_vars = ("X",)
    expected_kernel_type = dtype_of("Out@GRAD")

    def infer_shape(ctx):
        ctx.set_dim("X@GRAD", ctx.dim("X"))
        ctx.share_lod("X", "X@GRAD")

    def make_grad(fwd):
        return GradOp(
            "pad3d_double_grad",
            Paddings=fwd.input("Paddings"),
            grad_x_grad=fwd.output_grad("X@GRAD"),
            grad_out_grad=fwd.input_grad("Out@GRAD"),
            attrs=fwd.attrs,
        )


class Pad3DDoubleGrad(_Attrs, GradOpDef, type="pad3d_double_grad"):
    """pad3d again, with zeros in mode constant."""

    Paddings = op.Input("[6], int32; overrides the attribute.", dispensable=True)
    grad_x_grad = op.Input("Gradient of X@GRAD, shape of X.")
    grad_out_grad = op.Output("Gradient of Out@GRAD, shape of Out.")
    expected_kernel_type = dtype_of("grad_x@GRAD")

    def infer_shape(ctx):
        infer_padded(ctx, "grad_x@GRAD", "grad_out@GRAD", pairs_3d, 3)
