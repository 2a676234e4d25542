"""log_softmax: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext
from oprack.op.families import USE_MKLDNN, GradFromOut, like
from oprack.op.sbp import all_but

from oprack_nn.ops.activation._family import AXIS_DOC, Activation


class LogSoftmax(Activation, type="log_softmax"):
    r"""$$Out_i = X_i - \ln \sum_j e^{X_j}$$ along `axis`"""

    axis = Attr(-1, AXIS_DOC)
    use_mkldnn = USE_MKLDNN
    sbp = all_but("axis")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.axis("X")
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")


class LogSoftmaxGrad(GradFromOut, of=LogSoftmax):
    r"""$$X@GRAD_i = Out@GRAD_i - e^{Out_i} \sum_j Out@GRAD_j$$"""

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.axis("Out")
        like(ctx, [("X@GRAD", "Out")])
