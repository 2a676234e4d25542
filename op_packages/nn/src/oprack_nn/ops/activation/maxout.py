"""maxout: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.sbp import leading
from oprack.types import AttrType


class Maxout(OpDef, type="maxout"):
    r"""Maximum over groups of neighbouring channels: $$Out_{c} = \max_{g < groups} X_{c \cdot groups + g}$$"""

    X = Input("Feature maps with channels along `axis`.")
    Out = Output("Shape of X with channels / groups along `axis`.")
    groups = Attr(REQUIRED, "Channels that make one output channel.", type=AttrType.INT).greater_than(1)
    axis = Attr(1, "Dim of the channels: 1 for NCHW, 3 or -1 for NHWC.")
    sbp = leading(("X",), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = list(ctx.dim("X"))
        axis, groups = ctx.attr("axis"), ctx.attr("groups")
        ctx.require(-len(dims) <= axis < len(dims), f"axis is {axis}, but X has shape {dims}")
        channels = dims[axis]
        if channels >= 0:
            ctx.require(channels % groups == 0, f"X has {channels} channels; expected a multiple of groups {groups}")
            dims[axis] = channels // groups
        ctx.set_dim("Out", dims)


class MaxoutGrad(GradOpDef, of=Maxout, reads="X Out"):
    """The gradient goes to the first channel of the group that holds the maximum."""
