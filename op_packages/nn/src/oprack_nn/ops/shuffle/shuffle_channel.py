"""shuffle_channel: all of the op but its kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import Attr, GradOpDef, InferShapeContext, OpDef
from oprack.op.sbp import leading

from oprack_nn.ops.shuffle._family import regrouped


class ShuffleChannel(OpDef, type="shuffle_channel"):
    r"""$$Out_{n, j g + i} = X_{n, i C / g + j}$$ with g = group: channel_shuffle for [N, C, H, W] only."""

    X = op.Input("[N, C, H, W].")
    Out = op.Output("Shape of X.")
    group = Attr(1, "Number of groups.").at_least(1)
    use_mkldnn = Attr(False, "Paddle: prefer the oneDNN kernel.", extra=True)
    sbp = leading(("X",), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        regrouped(ctx, "X", "Out", 1, ctx.attr("group"))


class ShuffleChannelGrad(GradOpDef, of=ShuffleChannel, like="Out@GRAD", lod=False):
    """The inverse rearrangement."""
