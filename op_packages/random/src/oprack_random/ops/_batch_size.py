"""The shape rule of draws that take one dim from a batch."""

from __future__ import annotations

from oprack.op import InferShapeContext


def infer_batch_size_like(ctx: InferShapeContext) -> None:
    """Set Out to `shape`, with dim output_dim_idx from dim input_dim_idx of Input."""
    dims, shape = ctx.dim("Input"), list(ctx.attr("shape"))
    source, target = ctx.attr("input_dim_idx"), ctx.attr("output_dim_idx")
    ctx.require(
        0 <= source < len(dims) and 0 <= target < len(shape),
        f"input_dim_idx is {source} and output_dim_idx {target}; "
        f"expected places in Input {list(dims)} and shape {shape}",
    )
    shape[target] = dims[source]
    ctx.require_sizes("shape", shape)
    ctx.set_dim("Out", shape)
