"""conv3d: all of the op but its kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import Attr, OpVersion
from oprack.op.sbp import convolution

from oprack_nn.ops._layout import layout_attr
from oprack_nn.ops._windows import algorithm_attr, paddings_attr, positive
from oprack_nn.ops.conv._family import USE_ADDTO_NOTE, ConvDoubleGrad, ConvGrad, FusedConvExtras, infer_conv


class Conv3D(FusedConvExtras, type="conv3d"):
    r"""$$Output_{n,k,z,y,x} = \sum_{c,h,i,j} Input_{n,c,z s_d + h d_d - p_f,y s_h + i d_h - p_t,x s_w + j d_w - p_l}
    Filter_{k,c,h,i,j}$$

    conv2d with a third spatial dim, D.
    """

    Input = op.Input("[N, C, D, H, W], or [N, D, H, W, C] with data_format NDHWC.")
    Filter = op.Input("[K, C / groups, kd, kh, kw] in either layout.")
    Output = op.Output("[N, K, D', H', W'] in the layout of Input.")
    strides = positive([1, 1, 1], "Step along D, H and W.")
    paddings = paddings_attr(3)
    padding_algorithm = algorithm_attr()
    groups = Attr(1, "Groups of channels that see each other.").at_least(1)
    dilations = positive([1, 1, 1], "Distance of kernel taps along D, H and W.")
    data_format = layout_attr("NCDHW")
    versions = OpVersion("conv3d").checkpoint(USE_ADDTO_NOTE, ("new_attr", "use_addto", False))
    infer_shape = infer_conv
    sbp = convolution


class Conv3DGrad(ConvGrad, of=Conv3D):
    """As conv2d_grad, with a third spatial dim."""


class Conv3DGradGrad(ConvDoubleGrad, of=Conv3DGrad):
    """Gradient of conv3d_grad."""
