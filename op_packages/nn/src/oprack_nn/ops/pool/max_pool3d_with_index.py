"""max_pool3d_with_index: all of the op but its kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import Attr, GradOpDef, OpDef
from oprack.op.sbp import leading

from oprack_nn.ops._windows import paddings_attr, positive
from oprack_nn.ops.pool._family import infer_max_pool_shape, infer_max_pool_type, ksize_attr, max_pool_dims


class MaxPool3DWithIndex(OpDef, type="max_pool3d_with_index"):
    r"""$$Out_{n,c,z,y,x} = \max_{h,i,j} X_{n,c,z s_d + h - p_f,y s_h + i - p_t,x s_w + j - p_l}$$

    Max pooling that also says where: Mask is (z H + y) W + x of the first maximum of each window.
    """

    X = op.Input("[N, C, D, H, W].")
    Out = op.Output("[N, C, D', H', W'].")
    Mask = op.Output("[N, C, D', H', W'], int32: position in the D x H x W volume.")
    ksize = ksize_attr()
    strides = positive([1, 1, 1], "Step of the windows along D, H and W.")
    paddings = paddings_attr(3)
    global_pooling = Attr(False, "One window over all of D, H and W; ksize and paddings are ignored.")
    adaptive = Attr(False, "ksize is the output's size.")
    infer_shape = infer_max_pool_shape
    infer_var_type = infer_max_pool_type
    sbp = leading(("X",), ("Out", "Mask"))


class MaxPool3DWithIndexGrad(
    GradOpDef,
    of=MaxPool3DWithIndex,
    reads="X Mask Out@GRAD",
    shape_of="X",
    dims={"Mask": max_pool_dims, "Out@GRAD": max_pool_dims},
):
    """Adds Out@GRAD to X@GRAD at Mask."""
