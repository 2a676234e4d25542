"""conv3d_transpose: all of the op but its kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import Attr, OpVersion
from oprack.op.sbp import transposed_convolution
from oprack.types import AttrType

from oprack_nn.ops._layout import layout_attr
from oprack_nn.ops._windows import algorithm_attr, paddings_attr, positive
from oprack_nn.ops.conv._conv_transpose import OUTPUT_PADDING_NOTE, ConvTransposeGrad, infer_conv_transpose
from oprack_nn.ops.conv._family import CudnnExtras


class Conv3DTranspose(CudnnExtras, type="conv3d_transpose"):
    r"""$$Output_{n,k,z s_d + h d_d - p_f,y s_h + i d_h - p_t,x s_w + j d_w - p_l} \mathrel{+}= Input_{n,c,z,y,x}
    Filter_{c,k,h,i,j}$$

    conv2d_transpose with a third spatial dim, D.
    """

    Input = op.Input("[N, C, D, H, W], or [N, D, H, W, C] with data_format NDHWC.")
    Filter = op.Input("[C, K / groups, kd, kh, kw] in either layout.")
    Output = op.Output("[N, K, D', H', W'] in the layout of Input.")
    strides = positive([1, 1, 1], "Distance of the inputs along D, H and W of the output.")
    paddings = paddings_attr(3)
    output_padding = Attr([], "Extra planes, rows and columns at the end; empty for none.", type=AttrType.INTS)
    output_size = Attr([], "D, H and W of the output; empty for the smallest.", type=AttrType.INTS)
    padding_algorithm = algorithm_attr()
    groups = Attr(1, "Groups of channels that see each other.").at_least(1)
    dilations = positive([1, 1, 1], "Distance of kernel taps along D, H and W.")
    data_format = layout_attr("NCHW")
    versions = OpVersion("conv3d_transpose").checkpoint(OUTPUT_PADDING_NOTE, ("new_attr", "output_padding", []))
    infer_shape = infer_conv_transpose
    sbp = transposed_convolution


class Conv3DTransposeGrad(ConvTransposeGrad, of=Conv3DTranspose):
    """As conv2d_transpose_grad, with a third spatial dim."""
