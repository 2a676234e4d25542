"""What unpool and unpool3d share: slots, rules, the output's size."""

from __future__ import annotations

from oprack import op
from oprack.op import GradOpDef, InferShapeContext, OpDef, dtype_of


def unpool_dims(ctx: InferShapeContext) -> tuple[int, ...]:
    """Dims of Out; without output_size, as much as the windows that were pooled covered."""
    rank = len(ctx.attr("strides"))
    dims = ctx.require_rank("X", rank + 2)
    ctx.same_dims("X", "Indices")
    for name in ("ksize", "paddings"):
        given = ctx.attr(name)
        ctx.require(len(given) == rank, f"{name} is {list(given)}; expected {rank} numbers, one per spatial dim")
    size = ctx.attr("output_size")
    if any(not isinstance(s, int) for s in size):
        return (*dims[:2], *(-1,) * rank)  # a variable, whose value is not known yet
    if not any(size):
        steps = zip(dims[2:], ctx.attr("ksize"), ctx.attr("strides"), ctx.attr("paddings"), strict=True)
        size = [-1 if x < 0 else (x - 1) * s - 2 * p + k for x, k, s, p in steps]
    ctx.require(len(size) == rank, f"output_size is {list(size)}; expected {rank} numbers, one per spatial dim")
    ctx.require_sizes("the output's size", size)
    return (*dims[:2], *size)


class UnpoolOp(OpDef):
    """Slots and rules of unpool and unpool3d."""

    X = op.Input("Maxima [N, C, *spatial].")
    Indices = op.Input("Where each lies in the flattened spatial dims of Out, int32 or int64; shape of X.")
    Out = op.Output("[N, C, *output_size], zero where no maximum lies.")
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", unpool_dims(ctx))


class UnpoolGradOp(GradOpDef, reads="X Indices Out", shape_of="X Out", grads_of="X", dims={"Out@GRAD": unpool_dims}):
    """The rule of the gradient ops."""

    expected_kernel_type = dtype_of("Out@GRAD")
