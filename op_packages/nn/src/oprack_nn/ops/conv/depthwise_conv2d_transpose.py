"""depthwise_conv2d_transpose: all of the op but its kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import Attr, OpVersion
from oprack.op.sbp import transposed_convolution

from oprack_nn.ops.conv._conv_transpose import (
    OUTPUT_PADDING_NOTE,
    ConvTranspose2DAttrs,
    ConvTransposeGrad,
    infer_conv_transpose,
)


class DepthwiseConv2DTranspose(ConvTranspose2DAttrs, type="depthwise_conv2d_transpose"):
    r"""$$Output_{n,c m + k,y s_h + i d_h - p_t,x s_w + j d_w - p_l} \mathrel{+}= Input_{n,c,y,x} Filter_{c,k,i,j}$$, m
    = K / C.

    conv2d_transpose with one group per input channel.
    """

    Input = op.Input("[N, C, H, W], or [N, H, W, C] with data_format NHWC.")
    Filter = op.Input("[C, K / groups, kh, kw] in either layout.")
    Bias = op.Input("[K].", dispensable=True, extra=True)
    Output = op.Output("[N, K, H', W'] in the layout of Input.")
    use_cudnn = Attr(False, "Paddle: prefer the cuDNN kernel.", extra=True)
    versions = OpVersion("depthwise_conv2d_transpose").checkpoint(
        OUTPUT_PADDING_NOTE, ("new_attr", "output_padding", [])
    )
    infer_shape = infer_conv_transpose
    sbp = transposed_convolution


class DepthwiseConv2DTransposeGrad(ConvTransposeGrad, of=DepthwiseConv2DTranspose, reads="Input Filter Bias"):
    """As conv2d_transpose_grad, per channel."""

    Bias = op.Input("Bias of the forward op; gets no gradient.", dispensable=True)
