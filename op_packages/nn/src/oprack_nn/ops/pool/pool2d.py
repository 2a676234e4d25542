"""pool2d: all of the op but its kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import Attr, GradOpDef, InferShapeContext, OpDef
from oprack.op.sbp import leading

from oprack_nn.ops._layout import layout_attr
from oprack_nn.ops._windows import algorithm_attr, paddings_attr, positive
from oprack_nn.ops.pool._family import infer_pool_shape, ksize_attr, pool_dims


class Pool2D(OpDef, type="pool2d"):
    r"""$$Out_{n,c,y,x} = \max_{i,j} X_{n,c,y s_h + i - p_t,x s_w + j - p_l}$$ or the mean of the same window.

    As in Paddle, adaptive holds for avg; with max the output has the size ksize, but the windows are ksize wide and
    strides apart: max_pool2d_with_index is adaptive for max.
    """

    X = op.Input("[N, C, H, W], or [N, H, W, C] with data_format NHWC.")
    Out = op.Output("[N, C, H', W'] in the layout of X.")
    ksize = ksize_attr(support_tensor=True)
    strides = positive([1, 1], "Step of the windows along H and W.")
    paddings = paddings_attr(2)
    ceil_mode = Attr(False, "Let the last window reach over the end.")
    exclusive = Attr(True, "avg: divide by the elements of X in the window, not by its size.")
    data_format = layout_attr("NCHW")
    pooling_type = Attr("", "max or avg.").in_set(("max", "avg", ""))
    global_pooling = Attr(False, "One window over all of H and W; ksize and paddings are ignored.")
    adaptive = Attr(
        False, "ksize is the output's size; output i sees X from floor(i H / ksize) to ceil((i+1) H / ksize)."
    )
    padding_algorithm = algorithm_attr()
    use_cudnn = Attr(False, "Paddle: prefer the cuDNN kernel.")
    is_test = Attr(False, "Inference.", extra=True)
    mkldnn_data_type = Attr("float32", "Paddle: dtype of the oneDNN kernel.", extra=True)
    use_mkldnn = Attr(False, "Paddle: prefer the oneDNN kernel.", extra=True)
    use_quantizer = Attr(False, "Paddle: int8 oneDNN kernel.", extra=True)
    infer_shape = infer_pool_shape
    sbp = leading(("X",), ("Out",))


class Pool2DGrad(GradOpDef, of=Pool2D, reads="X Out", dims={"Out@GRAD": pool_dims}):
    """max: Out@GRAD goes to the first element of each window that equals Out; avg: it is spread over the window."""


class Pool2DDoubleGrad(
    GradOpDef,
    of=Pool2DGrad,
    type="pool2d_double_grad",
    grads_of="Out@GRAD",
    names={"X@GRAD": "grad_x", "Out@GRAD": "grad_out"},
):
    """Gradient of pool2d_grad by Out@GRAD: average pooling again. That of max pooling would need X, which it lacks."""

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("grad_out@GRAD", pool_dims(ctx, "grad_x@GRAD"))
