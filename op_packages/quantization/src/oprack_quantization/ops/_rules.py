"""Shape and type rules of quantization ops."""

from __future__ import annotations

from oprack.op import ForwardOp, GradOp, InferShapeContext, InferVarTypeContext
from oprack.op.families import like


def straight_through(fwd: ForwardOp) -> GradOp:
    """make_grad of an op that counts as the identity: Out@GRAD is X@GRAD."""
    grads = {"Out@GRAD": fwd.output_grad("Out"), "X@GRAD": fwd.input_grad("X")}
    return GradOp("stright_throuth_estimator_grad", slots=grads)


def out_and_scale(ctx: InferShapeContext) -> None:
    """infer_shape: Out like X, and one scale."""
    like(ctx, [("Out", "X")])
    ctx.set_dim("OutScale", (1,))


def channels(ctx: InferShapeContext, slot: str = "X") -> int:
    """How many channels an input has along `quant_axis`. Raises InvalidArgumentError for an axis that is not there."""
    return ctx.dim(slot)[ctx.axis(slot, "quant_axis")]


def out_and_channel_scales(ctx: InferShapeContext) -> None:
    """infer_shape: Out like X, and a scale for each channel."""
    like(ctx, [("Out", "X")])
    ctx.set_dim("OutScale", (channels(ctx),))


def moving_average(ctx: InferShapeContext) -> None:
    """Part of an infer_shape: the new state and sum have one number each, and without them there is no average."""
    both = ctx.has_input("InState") and ctx.has_input("InAccum")
    ctx.require(
        ctx.attr("is_test") or both,
        "is_test is false and InState or InAccum is absent; expected both, [1] each, from which the average goes on",
    )
    for slot in ("InState", "InAccum", "InScale"):
        if slot in ctx.proto.inputs and ctx.has_input(slot):
            ctx.require_dims(slot, (1,), why="one number")
    for slot in ("OutScale", "OutState", "OutAccum"):
        ctx.set_dim(slot, (1,))


def like_x(ctx: InferVarTypeContext) -> None:
    """infer_var_type: every output has the dtype of X."""
    for slot in ctx.proto.outputs:
        if ctx.has_output(slot):
            ctx.set_dtype(slot, ctx.dtype("X"))
