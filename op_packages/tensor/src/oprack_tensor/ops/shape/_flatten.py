"""What flatten and flatten2 share."""

from __future__ import annotations

from oprack.op import InferShapeContext, normal_axis

from oprack_tensor.dims import product


def flattened(ctx: InferShapeContext) -> None:
    """Set Out to the matrix of X cut at `axis`."""
    dims, axis = ctx.dim("X"), ctx.attr("axis")
    if axis != len(dims):
        axis = normal_axis(ctx.op_type, axis, len(dims))
    out = (product(dims[:axis]), product(dims[axis:]))
    ctx.set_dim("Out", out)
    if dims and out[0] == dims[0]:
        ctx.share_lod("X", "Out")
