"""What unsqueeze and unsqueeze2 share."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, Input, OpDef, Output
from oprack.op.sbp import regrouped
from oprack.types import AttrType

from oprack_tensor.dims import given_ints, unsqueeze_dims


class UnsqueezeOp(OpDef):
    """Out is X with a dim of size 1 inserted for each of `axes`, one after the other."""

    X = Input("Tensor of any shape.")
    Out = Output("X with more dims; LoD of X unless a new dim comes first.")
    axes = Attr(
        [],
        "Places of the new dims in the shape made so far; negative ones count from the end.",
        type=AttrType.INTS,
    )
    inplace = {"X": "Out"}

    sbp = regrouped


def infer_shape(ctx: InferShapeContext, tensor: str = "", tensors: str = "") -> None:
    """Sets Out. tensor, tensors: slots that override `axes`."""
    dims, axes = ctx.dim("X"), given_ints(ctx, "axes", tensor, tensors)
    unknown = any(a is None for a in axes)
    ctx.set_dim("Out", (-1,) * (len(dims) + len(axes)) if unknown else unsqueeze_dims(ctx.op_type, dims, axes))
    if unknown or unsqueeze_dims(ctx.op_type, (0,) * len(dims), axes)[:1] == [0]:  # rows are still rows
        ctx.share_lod("X", "Out")
