"""depthwise_conv2d: all of the op but its kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import Attr, OpVersion
from oprack.op.sbp import convolution
from oprack.types import AttrType

from oprack_nn.ops._layout import layout_attr
from oprack_nn.ops._windows import algorithm_attr, paddings_attr, positive
from oprack_nn.ops.conv._family import USE_ADDTO_NOTE, ConvDoubleGrad, ConvGrad, FusedConvExtras, infer_conv


class DepthwiseExtras(FusedConvExtras):
    """Hints of depthwise_conv2d."""

    use_cudnn = Attr(False, "Paddle: prefer the cuDNN kernel.", extra=True)
    fuse_relu_before_depthwise_conv = Attr(False, "Paddle: ReLU of the input fused by a GPU pass.", extra=True)
    use_quantizer = Attr(False, "Paddle: int8 oneDNN kernel.", extra=True)
    Scale_in = Attr(1.0, "Paddle: int8 scale of the input.", extra=True)
    Scale_in_eltwise = Attr(1.0, "Paddle: int8 scale of the fused addend.", extra=True)
    Scale_out = Attr(1.0, "Paddle: int8 scale of the output.", extra=True)
    Scale_weights = Attr([1.0], "Paddle: int8 scales of the filter.", type=AttrType.FLOATS, extra=True)


class DepthwiseConv2D(DepthwiseExtras, type="depthwise_conv2d"):
    r"""$$Output_{n,k,y,x} = \sum_{i,j} Input_{n,\lfloor k C / K \rfloor,y s_h + i d_h - p_t,x s_w + j d_w - p_l}
    Filter_{k,0,i,j}$$

    conv2d with one group per input channel; each channel makes K / C output channels.
    """

    Input = op.Input("[N, C, H, W], or [N, H, W, C] with data_format NHWC.")
    Filter = op.Input("[K, 1, kh, kw] in either layout.")
    Output = op.Output("[N, K, H', W'] in the layout of Input.")
    strides = positive([1, 1], "Step along H and W.")
    paddings = paddings_attr(2)
    padding_algorithm = algorithm_attr()
    groups = Attr(1, "Number of input channels.").at_least(1)
    dilations = positive([1, 1], "Distance of kernel taps along H and W.")
    data_format = layout_attr("NCHW")
    versions = OpVersion("depthwise_conv2d").checkpoint(USE_ADDTO_NOTE, ("new_attr", "use_addto", False))
    infer_shape = infer_conv
    sbp = convolution


class DepthwiseConv2DGrad(ConvGrad, of=DepthwiseConv2D):
    """As conv2d_grad, per channel."""


class DepthwiseConv2DGradGrad(ConvDoubleGrad, of=DepthwiseConv2DGrad):
    """Gradient of depthwise_conv2d_grad."""
