"""pad3d and its gradients: all of the ops but their kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import REQUIRED, Attr, GradOpDef, InferShapeContext, OpDef, dtype_of
from oprack.op.sbp import leading
from oprack.types import AttrType

from oprack_nn.ops._layout import layout_attr
from oprack_nn.ops.pad._family import infer_padded, pairs_3d


class Pad3D(OpDef, type="pad3d"):
    r"""$$Out_{n,c,z,y,x} = X_{n,c,\sigma_D(z - front),\sigma_H(y - top),\sigma_W(x - left)}$$

    With constant, sigma(i) = i and what lies outside is `value`; reflect: $$\sigma_n(i) = \min(|i|, 2 (n - 1) - |i|)$$;
    replicate: $$\sigma_n(i) = \min(\max(i, 0), n - 1)$$; circular: $$\sigma_n(i) = i \bmod n$$. Images and sequences
    come with D or D and H of 1.
    """

    X = op.Input("[N, C, D, H, W], or [N, D, H, W, C] with data_format NDHWC.")
    Paddings = op.Input("[6], int32; overrides the attribute.", dispensable=True)
    Out = op.Output("X with D, H and W padded.")
    paddings = Attr(REQUIRED, "[left, right, top, bottom, front, back].", type=AttrType.INTS)
    mode = Attr("constant", "constant; reflect: mirror without the edge; replicate: repeat the edge; circular.").in_set(
        ("constant", "reflect", "replicate", "circular")
    )
    value = Attr(0.0, "Value of the new elements in mode constant.")
    data_format = layout_attr("NCDHW")
    use_mkldnn = Attr(False, "Paddle: prefer the oneDNN kernel.", extra=True)
    expected_kernel_type = dtype_of("X")
    sbp = leading(("X",), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        infer_padded(ctx, "X", "Out", pairs_3d, 3)


class Pad3DGrad(GradOpDef, of=Pad3D, reads="Paddings", shape_of="X", grads_of="X"):
    """X@GRAD sums Out@GRAD over the copies of each element."""


class Pad3DDoubleGrad(
    GradOpDef,
    of=Pad3DGrad,
    type="pad3d_double_grad",
    reads="Paddings",
    grads_of="Out@GRAD",
    names={"X@GRAD": "grad_x", "Out@GRAD": "grad_out"},
):
    """pad3d again, with zeros in mode constant."""

    def infer_shape(ctx: InferShapeContext) -> None:
        infer_padded(ctx, "grad_x@GRAD", "grad_out@GRAD", pairs_3d, 3)
