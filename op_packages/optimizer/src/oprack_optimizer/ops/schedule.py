"""Definitions of ops that say how a training goes on: learning rates."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of, empty_grad
from oprack.types import AttrType


class Pow2DecayWithLinearWarmup(OpDef, type="pow2_decay_with_linear_warmup"):
    r"""$$LearningRateOut = base\_lr \frac{s}{warmup\_steps}$$ for $$s = Step + 1 \le warmup\_steps$$, then
    $$(base\_lr - end\_lr) (1 - \frac{s - warmup\_steps}{total\_steps - warmup\_steps})^2 + end\_lr$$, and
    end_lr from total_steps on

    StepOut is s.
    """

    LearningRate = Input("The rate of the step before [1]; its value is not used.")
    Step = Input("Steps that were made [1], int64.")
    LearningRateOut = Output("The rate [1]; the variable of LearningRate.")
    StepOut = Output("Step + 1; the variable of Step.")
    warmup_steps = Attr(REQUIRED, "Steps in which the rate grows.", type=AttrType.LONG)
    total_steps = Attr(REQUIRED, "Step from which on the rate is end_lr.", type=AttrType.LONG)
    base_lr = Attr(REQUIRED, "The greatest rate.", type=AttrType.FLOAT)
    end_lr = Attr(REQUIRED, "The last rate.", type=AttrType.FLOAT)
    inplace = {"LearningRate": "LearningRateOut", "Step": "StepOut"}
    make_grad = empty_grad
    expected_kernel_type = dtype_of("LearningRate")

    def infer_shape(ctx: InferShapeContext) -> None:
        warmup, total = ctx.attr("warmup_steps"), ctx.attr("total_steps")
        ctx.require(
            warmup <= total, f"warmup_steps is {warmup} and total_steps {total}; expected no more warmup than steps"
        )
        for slot in ("LearningRate", "Step"):
            ctx.require_dims(slot, (1,))
            ctx.set_dim(f"{slot}Out", ctx.dim(slot))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        for slot in ("LearningRate", "Step"):
            ctx.set_dtype(f"{slot}Out", ctx.dtype(slot))
