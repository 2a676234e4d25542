"""pad2d and its gradient: all of the ops but their kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import REQUIRED, Attr, GradOpDef, InferShapeContext, OpDef, dtype_of
from oprack.op.sbp import leading
from oprack.types import AttrType

from oprack_nn.ops._layout import layout_attr
from oprack_nn.ops.pad._family import infer_padded, pairs_2d


class Pad2D(OpDef, type="pad2d"):
    r"""$$Out_{n,c,y,x} = X_{n,c,\sigma_H(y - top),\sigma_W(x - left)}$$

    With constant, sigma(i) = i and what lies outside is pad_value; reflect:
    $$\sigma_n(i) = \min(|i|, 2 (n - 1) - |i|)$$; edge: $$\sigma_n(i) = \min(\max(i, 0), n - 1)$$. An op of Paddle 1.x,
    pad3d in 2.x.
    """

    X = op.Input("[N, C, H, W], or [N, H, W, C] with data_format NHWC.")
    Paddings = op.Input("[4], int32; overrides the attribute.", dispensable=True)
    Out = op.Output("X with H and W padded.")
    paddings = Attr(REQUIRED, "[top, bottom, left, right].", type=AttrType.INTS)
    pad_value = Attr(0.0, "Value of the new elements in mode constant.")
    mode = Attr("constant", "constant; reflect: mirror without the edge; edge: repeat the edge.").in_set(
        ("constant", "reflect", "edge")
    )
    data_format = layout_attr("NCHW")
    use_mkldnn = Attr(False, "Paddle: prefer the oneDNN kernel.", extra=True)
    expected_kernel_type = dtype_of("X")
    sbp = leading(("X",), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        infer_padded(ctx, "X", "Out", pairs_2d, 2)


class Pad2DGrad(GradOpDef, of=Pad2D, reads="Paddings", shape_of="X", grads_of="X", lod=False):
    """X@GRAD sums Out@GRAD over the copies of each element."""
