"""pixel_shuffle: all of the op but its kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import Attr, GradOpDef, InferShapeContext, OpDef, OpVersion
from oprack.op.sbp import leading

from oprack_nn.ops._layout import layout_attr
from oprack_nn.ops.shuffle._family import downscaled, upscaled


class PixelShuffle(OpDef, type="pixel_shuffle"):
    r"""$$Out_{n,c,yr+i,xr+j} = X_{n,c r^2 + i r + j,y,x}$$"""

    X = op.Input("[N, C r r, H, W], or [N, H, W, C r r] with data_format NHWC.")
    Out = op.Output("[N, C, H r, W r] in the layout of X.")
    upscale_factor = Attr(1, "Growth r of H and W.").at_least(1)
    data_format = layout_attr("NCHW")
    versions = OpVersion("pixel_shuffle").checkpoint("New attribute data_format.", ("new_attr", "data_format", "NCHW"))
    sbp = leading(("X",), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        upscaled(ctx, "X", "Out", ctx.attr("upscale_factor"))


class PixelShuffleGrad(GradOpDef, of=PixelShuffle, linear=True):
    """The inverse rearrangement."""

    def infer_shape(ctx: InferShapeContext) -> None:
        downscaled(ctx, "Out@GRAD", "X@GRAD", ctx.attr("upscale_factor"))
