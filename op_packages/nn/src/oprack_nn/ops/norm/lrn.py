"""lrn and its gradient: all of the ops but their kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.sbp import leading

from oprack_nn.ops._layout import layout_attr


class Lrn(OpDef, type="lrn"):
    r"""$$Out_c = X_c MidOut_c^{-beta}$$ with $$MidOut_c = k + alpha \sum_{|j - c| \le (n - 1) / 2} X_j^2$$

    Local response normalization across channels (Krizhevsky et al., 2012).
    """

    X = Input("[N, C, H, W], or [N, H, W, C] with data_format NHWC.")
    Out = Output("Shape of X.")
    MidOut = Output("What is raised to -beta, kept for the gradient; shape of X.", stop_gradient=True)
    n = Attr(5, "Channels that are summed around each; an odd number.").check(
        lambda v: v > 0 and v % 2 == 1, "odd and greater than 0"
    )
    k = Attr(2.0, "Added to the sum.").at_least(0.0)
    alpha = Attr(0.0001, "Factor of the sum.").at_least(0.0)
    beta = Attr(0.75, "Exponent.").at_least(0.0)
    data_format = layout_attr("AnyLayout")
    is_test = Attr(False, "Paddle: MidOut is not needed.", extra=True)
    use_mkldnn = Attr(False, "Paddle: prefer the oneDNN kernel.", extra=True)
    sbp = leading(("X",), ("Out", "MidOut"))

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.require_rank("X", 4)
        ctx.set_dim("Out", dims)
        ctx.set_dim("MidOut", dims)
        ctx.share_lod("X", "Out")


class LrnGrad(GradOpDef, of=Lrn, reads="X Out MidOut Out@GRAD"):
    r"""$$X@GRAD_c = Out@GRAD_c MidOut_c^{-beta} - 2 \, alpha \, beta X_c \sum_{|j - c| \le (n - 1) / 2}
    \frac{Out@GRAD_j Out_j}{MidOut_j}$$
    """
