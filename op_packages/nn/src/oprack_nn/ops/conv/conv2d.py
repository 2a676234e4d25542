"""conv2d: all of the op but its kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import Attr, OpVersion
from oprack.op.sbp import convolution

from oprack_nn.ops._layout import layout_attr
from oprack_nn.ops._windows import algorithm_attr, paddings_attr, positive
from oprack_nn.ops.conv._family import USE_ADDTO_NOTE, ConvDoubleGrad, ConvGrad, CudnnExtras, infer_conv


class ConvExtras(CudnnExtras):
    """Hints of conv2d."""

    exhaustive_search = Attr(False, "Paddle: try all cuDNN algorithms.", extra=True)
    force_fp32_output = Attr(False, "Paddle: oneDNN bfloat16 kernels return float32.", extra=True)
    is_test = Attr(False, "Inference.", extra=True)
    use_addto = Attr(False, "Paddle: add the gradient to what its variable holds.", extra=True)


class Conv2D(ConvExtras, type="conv2d"):
    r"""$$Output_{n,k,y,x} = \sum_{c,i,j} Input_{n,c,y s_h + i d_h - p_t,x s_w + j d_w - p_l} Filter_{k,c,i,j}$$

    with c over the channels of k's group; taps outside of Input are zero.
    """

    Input = op.Input("[N, C, H, W], or [N, H, W, C] with data_format NHWC.")
    Filter = op.Input("[K, C / groups, kh, kw] in either layout.")
    Output = op.Output("[N, K, H', W'] in the layout of Input.")
    strides = positive([1, 1], "Step along H and W.")
    paddings = paddings_attr(2)
    padding_algorithm = algorithm_attr()
    dilations = positive([1, 1], "Distance of kernel taps along H and W.")
    groups = Attr(1, "Groups of channels that see each other.").at_least(1)
    data_format = layout_attr("NCHW")
    versions = OpVersion("conv2d").checkpoint(USE_ADDTO_NOTE, ("new_attr", "use_addto", False))
    infer_shape = infer_conv
    sbp = convolution


class Conv2DGrad(ConvGrad, of=Conv2D):
    """Input@GRAD is the transposed convolution of Output@GRAD; Filter@GRAD correlates Input with Output@GRAD."""


class Conv2DGradGrad(ConvDoubleGrad, of=Conv2DGrad):
    """Gradient of conv2d_grad, which is linear in each of Input, Filter and Output@GRAD."""
