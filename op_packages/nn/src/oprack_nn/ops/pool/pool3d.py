"""pool3d: all of the op but its kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import Attr, GradOpDef, OpDef
from oprack.op.sbp import leading

from oprack_nn.ops._layout import layout_attr
from oprack_nn.ops._windows import algorithm_attr, paddings_attr, positive
from oprack_nn.ops.pool._family import infer_pool_shape, ksize_attr, pool_dims


class Pool3D(OpDef, type="pool3d"):
    r"""$$Out_{n,c,z,y,x} = \max_{h,i,j} X_{n,c,z s_d + h - p_f,y s_h + i - p_t,x s_w + j - p_l}$$ or the mean of the
    same window.

    pool2d with a third spatial dim, D.
    """

    X = op.Input("[N, C, D, H, W], or [N, D, H, W, C] with data_format NDHWC.")
    Out = op.Output("[N, C, D', H', W'] in the layout of X.")
    ksize = ksize_attr()
    strides = positive([1, 1, 1], "Step of the windows along D, H and W.")
    paddings = paddings_attr(3)
    ceil_mode = Attr(False, "Let the last window reach over the end.")
    exclusive = Attr(True, "avg: divide by the elements of X in the window, not by its size.")
    data_format = layout_attr("NCDHW")
    pooling_type = Attr("", "max or avg.").in_set(("max", "avg", ""))
    global_pooling = Attr(False, "One window over all of D, H and W; ksize and paddings are ignored.")
    adaptive = Attr(
        False, "ksize is the output's size; output i sees X from floor(i H / ksize) to ceil((i+1) H / ksize)."
    )
    padding_algorithm = algorithm_attr()
    use_cudnn = Attr(False, "Paddle: prefer the cuDNN kernel.")
    use_mkldnn = Attr(False, "Paddle: prefer the oneDNN kernel.", extra=True)
    infer_shape = infer_pool_shape
    sbp = leading(("X",), ("Out",))


class Pool3DGrad(GradOpDef, of=Pool3D, reads="X Out", dims={"Out@GRAD": pool_dims}):
    """As pool2d_grad, with a third spatial dim."""
