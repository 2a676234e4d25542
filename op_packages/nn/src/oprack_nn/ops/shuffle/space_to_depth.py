"""space_to_depth (Paddle 1.x) and its gradient: all of the ops but their kernels."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.sbp import leading
from oprack.types import AttrType


class SpaceToDepth(OpDef, type="space_to_depth"):
    r"""$$Out.flat = (Z_{n,c,y,i,x,j}).flat$$ with $$Z_{n,c,y,i,x,j} = X_{n, (i b + j) C' + c, y, x}$$

    b = blocksize and C' = C / b^2. The order is that of darknet's reorg layer, which unfolds channels into an image of
    b H x b W and reads its elements as an image of H / b x W / b; pixel_unshuffle keeps each channel's pixels together.
    """

    X = Input("[N, C, H, W]; C is a multiple of blocksize squared, H and W of blocksize.")
    Out = Output("[N, C b b, H / b, W / b].")
    blocksize = Attr(REQUIRED, "The factor b by which H and W shrink.", type=AttrType.LONG).greater_than(1)

    sbp = leading(("X",), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        n, c, h, w = ctx.require_rank("X", 4)
        b = ctx.attr("blocksize")
        ctx.require(
            (c < 0 or c % (b * b) == 0) and all(x < 0 or x % b == 0 for x in (h, w)),
            f"X has shape {[n, c, h, w]}; expected channels divisible by {b * b}, and height and width by {b}",
        )
        ctx.set_dim("Out", (n, c if c < 0 else c * b * b, *(x if x < 0 else x // b for x in (h, w))))


class SpaceToDepthGrad(GradOpDef, of=SpaceToDepth, shape_of="X"):
    """Out@GRAD with each element where it came from."""
