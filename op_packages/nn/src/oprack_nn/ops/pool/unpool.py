"""unpool and its gradient: all of the ops but their kernels."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr
from oprack.op.sbp import leading
from oprack.types import AttrType

from oprack_nn.ops._windows import positive
from oprack_nn.ops.pool._unpool import UnpoolGradOp, UnpoolOp


class Unpool(UnpoolOp, type="unpool"):
    r"""$$Out_{n,c,Indices_{n,c,y,x}} = X_{n,c,y,x}$$, 0 elsewhere

    Maxima back where max_pool2d_with_index found them.
    """

    ksize = Attr(REQUIRED, "Size of the windows that were pooled.", type=AttrType.INTS)
    unpooling_type = Attr(REQUIRED, "Only max.", type=AttrType.STRING).in_set(("max",))
    strides = positive([1, 1], "Step of the windows along H and W.")
    paddings = Attr([0, 0], "Padding of H and W when they were pooled.")
    output_size = Attr([0, 0], "[H, W] of Out; zeros: as the windows give it.", support_tensor=True)
    data_format = Attr("NCHW", "Only NCHW.").in_set(("NCHW",))
    sbp = leading(("X", "Indices"), ("Out",))


class UnpoolGrad(UnpoolGradOp, of=Unpool):
    r"""$$X@GRAD_{n,c,y,x} = Out@GRAD_{n,c,Indices_{n,c,y,x}}$$"""
