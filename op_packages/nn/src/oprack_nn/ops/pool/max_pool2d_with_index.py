"""max_pool2d_with_index: all of the op but its kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import Attr, GradOpDef, OpDef
from oprack.op.sbp import leading

from oprack_nn.ops._windows import paddings_attr, positive
from oprack_nn.ops.pool._family import infer_max_pool_shape, infer_max_pool_type, ksize_attr, max_pool_dims


class MaxPool2DWithIndex(OpDef, type="max_pool2d_with_index"):
    r"""$$Out_{n,c,y,x} = \max_{i,j} X_{n,c,y s_h + i - p_t,x s_w + j - p_l}$$

    Max pooling that also says where: Mask is y W + x of the first maximum of each window.
    """

    X = op.Input("[N, C, H, W].")
    Out = op.Output("[N, C, H', W'].")
    Mask = op.Output("[N, C, H', W'], int32: position in the H x W plane.")
    ksize = ksize_attr()
    strides = positive([1, 1], "Step of the windows along H and W.")
    paddings = paddings_attr(2)
    global_pooling = Attr(False, "One window over all of H and W; ksize and paddings are ignored.")
    adaptive = Attr(False, "ksize is the output's size.")
    infer_shape = infer_max_pool_shape
    infer_var_type = infer_max_pool_type
    sbp = leading(("X",), ("Out", "Mask"))


class MaxPool2DWithIndexGrad(
    GradOpDef,
    of=MaxPool2DWithIndex,
    reads="X Mask Out@GRAD",
    shape_of="X",
    dims={"Mask": max_pool_dims, "Out@GRAD": max_pool_dims},
):
    """Adds Out@GRAD to X@GRAD at Mask."""
