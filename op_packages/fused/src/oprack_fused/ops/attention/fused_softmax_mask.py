"""fused_softmax_mask and its gradient."""

from __future__ import annotations

from oprack.op import ForwardOp, GradOp, GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.families import like


class FusedSoftmaxMask(OpDef, type="fused_softmax_mask"):
    r"""$$Out = \operatorname{softmax}(X + Mask)$$ along the last dim."""

    X = Input("[B, H, S, T].")
    Mask = Input("[B, 1, S, T].")
    Out = Output("Shape of X.")

    def infer_shape(ctx: InferShapeContext) -> None:
        b, _, s, t = dims = ctx.require_rank("X", 4)
        ctx.require_dims("Mask", (b, 1, s, t), why=f"one mask for all heads of X {list(dims)}")
        ctx.set_dim("Out", dims)

    def make_grad(fwd: ForwardOp) -> GradOp:
        slots = {"Softmax": fwd.output("Out"), "Out@GRAD": fwd.output_grad("Out"), "X@GRAD": fwd.input_grad("X")}
        return GradOp("fused_softmax_mask_grad", slots=slots)


class FusedSoftmaxMaskGrad(GradOpDef, type="fused_softmax_mask_grad"):
    r"""$$X@GRAD = Softmax \odot (Out@GRAD - \sum_{last} Softmax \odot Out@GRAD)$$"""

    Softmax = Input("Out of the forward op.")
    Out_grad = Input("Gradient of Out.")
    X_grad = Output("Gradient of X.")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.same_dims("Softmax", "Out@GRAD")
        like(ctx, [("X@GRAD", "Softmax")])
