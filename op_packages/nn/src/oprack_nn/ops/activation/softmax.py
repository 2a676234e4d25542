"""softmax: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext
from oprack.op.families import MKLDNN_DATA_TYPE, USE_CUDNN, USE_MKLDNN, GradFromOut, like
from oprack.op.sbp import all_but

from oprack_nn.ops.activation._family import AXIS_DOC, Activation


class Softmax(Activation, type="softmax"):
    r"""$$Out_i = e^{X_i} / \sum_j e^{X_j}$$ along `axis`"""

    axis = Attr(-1, AXIS_DOC)
    data_format = Attr("AnyLayout", "Layout of X for oneDNN's kernel.", extra=True)
    is_test = Attr(False, "Run for inference only.", extra=True)
    mkldnn_data_type = MKLDNN_DATA_TYPE
    use_cudnn = Attr(True, USE_CUDNN.doc, extra=True)
    use_mkldnn = USE_MKLDNN
    sbp = all_but("axis")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.axis("X")
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")


class SoftmaxGrad(GradFromOut, of=Softmax):
    r"""$$X@GRAD_i = Out_i (Out@GRAD_i - \sum_j Out@GRAD_j Out_j)$$"""

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.axis("Out")
        like(ctx, [("X@GRAD", "Out")])
