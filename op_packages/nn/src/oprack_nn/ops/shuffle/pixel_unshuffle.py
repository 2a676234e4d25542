"""pixel_unshuffle: all of the op but its kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import Attr, GradOpDef, InferShapeContext, OpDef
from oprack.op.sbp import leading

from oprack_nn.ops._layout import layout_attr
from oprack_nn.ops.shuffle._family import downscaled, upscaled


class PixelUnshuffle(OpDef, type="pixel_unshuffle"):
    r"""The inverse of pixel_shuffle: $$Out_{n,c r^2 + i r + j,y,x} = X_{n,c,yr+i,xr+j}$$"""

    X = op.Input("[N, C, H r, W r], or [N, H r, W r, C] with data_format NHWC.")
    Out = op.Output("[N, C r r, H, W] in the layout of X.")
    downscale_factor = Attr(1, "Factor r that H and W shrink by.").at_least(1)
    data_format = layout_attr("NCHW")
    sbp = leading(("X",), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        downscaled(ctx, "X", "Out", ctx.attr("downscale_factor"))


class PixelUnshuffleGrad(GradOpDef, of=PixelUnshuffle, linear=True):
    """The inverse rearrangement."""

    def infer_shape(ctx: InferShapeContext) -> None:
        upscaled(ctx, "Out@GRAD", "X@GRAD", ctx.attr("downscale_factor"))
