"""Definitions of softmax and its logarithm, over one dim."""

from __future__ import annotations

from typing import Any

from oprack.op import Attr, InferShapeContext
from oprack.op.families import MKLDNN_DATA_TYPE, USE_CUDNN, USE_MKLDNN, GradFromOut, like
from oprack.op.sbp import all_but
from oprack_math.composition import composed

from oprack_nn.ops.activation import Activation


class OverAxis(Activation):
    """What softmax and its logarithm share."""

    axis = Attr(-1, "Dim whose elements compete; may be negative.")
    use_mkldnn = USE_MKLDNN
    sbp = all_but("axis")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.axis("X")
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")


class OverAxisGrad(GradFromOut):
    """What their gradients share."""

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.axis("Out")
        like(ctx, [("X@GRAD", "Out")])


class Softmax(OverAxis, type="softmax"):
    r"""$$Out_i = e^{X_i} / \sum_j e^{X_j}$$ along `axis`"""

    data_format = Attr("AnyLayout", "Layout of X for oneDNN's kernel.", extra=True)
    is_test = Attr(False, "Run for inference only.", extra=True)
    mkldnn_data_type = MKLDNN_DATA_TYPE
    use_cudnn = Attr(True, USE_CUDNN.doc, extra=True)


class SoftmaxGrad(OverAxisGrad, of=Softmax):
    r"""$$X@GRAD_i = Out_i (Out@GRAD_i - \sum_j Out@GRAD_j Out_j)$$"""

    @composed
    def make_grad(o: Any, Out: Any, Out_grad: Any) -> Any:
        product = Out_grad * Out
        return product - Out * o.reduce_sum(X=product, dim=[o.attrs["axis"]], keep_dim=True)


class LogSoftmax(OverAxis, type="log_softmax"):
    r"""$$Out_i = X_i - \ln \sum_j e^{X_j}$$ along `axis`"""


class LogSoftmaxGrad(OverAxisGrad, of=LogSoftmax):
    r"""$$X@GRAD_i = Out@GRAD_i - e^{Out_i} \sum_j Out@GRAD_j$$"""

    @composed
    def make_grad(o: Any, Out: Any, Out_grad: Any) -> Any:
        return Out_grad - o.exp(X=Out) * o.reduce_sum(X=Out_grad, dim=[o.attrs["axis"]], keep_dim=True)
