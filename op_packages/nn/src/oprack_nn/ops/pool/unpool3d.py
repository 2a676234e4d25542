"""unpool3d and its gradient: all of the ops but their kernels."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr
from oprack.types import AttrType

from oprack_nn.ops._windows import positive
from oprack_nn.ops.pool._unpool import UnpoolGradOp, UnpoolOp


class Unpool3D(UnpoolOp, type="unpool3d"):
    r"""$$Out_{n,c,Indices_{n,c,z,y,x}} = X_{n,c,z,y,x}$$, 0 elsewhere

    Maxima back where max_pool3d_with_index found them.
    """

    ksize = Attr(REQUIRED, "Size of the windows that were pooled.", type=AttrType.INTS)
    strides = positive([1, 1, 1], "Step of the windows along D, H and W.")
    paddings = Attr([0, 0, 0], "Padding of D, H and W when they were pooled.")
    output_size = Attr([0, 0, 0], "[D, H, W] of Out; zeros: as the windows give it.")
    data_format = Attr("NCDHW", "Only NCDHW.").in_set(("NCDHW",))


class Unpool3DGrad(UnpoolGradOp, of=Unpool3D):
    r"""$$X@GRAD_{n,c,z,y,x} = Out@GRAD_{n,c,Indices_{n,c,z,y,x}}$$"""
