"""Definitions of updates of many parameters at once."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of, empty_grad
from oprack.types import AttrType

_UPDATES = {
    "Params": "ParamsOut",
    "Moments1": "Moments1Out",
    "Moments2": "Moments2Out",
    "Beta1Pows": "Beta1PowsOut",
    "Beta2Pows": "Beta2PowsOut",
    "MasterParams": "MasterParamsOut",
}


class FusedAdam(OpDef, type="fused_adam"):
    r"""$$Params_i, Moments1_i, Moments2_i = \operatorname{adam}(Params_i, Grads_i, Moments1_i, Moments2_i)$$

    for all $i$ at once, or adamw with `use_adamw`, whose formula holds.
    """

    Params = Input("Parameters.", duplicable=True)
    Grads = Input("Their gradients.", duplicable=True)
    LearningRate = Input("One element.")
    Moments1 = Input("Means of the gradients.", duplicable=True)
    Moments2 = Input("Means of their squares.", duplicable=True)
    Beta1Pows = Input("Powers of beta1 for this step.", duplicable=True)
    Beta2Pows = Input("Powers of beta2 for this step.", duplicable=True)
    MasterParams = Input("float32 copies of 16-bit parameters.", duplicable=True, dispensable=True)
    SkipUpdate = Input("One bool; true leaves everything as it is.", dispensable=True)
    ParamsOut = Output("Updated parameters.", duplicable=True)
    Moments1Out = Output("Updated Moments1.", duplicable=True)
    Moments2Out = Output("Updated Moments2.", duplicable=True)
    Beta1PowsOut = Output("Beta1Pows for the next step.", duplicable=True)
    Beta2PowsOut = Output("Beta2Pows for the next step.", duplicable=True)
    MasterParamsOut = Output("Updated copies.", duplicable=True, dispensable=True)
    beta1 = Attr(0.9, "Share of Moments1 that is kept.", support_tensor=True)
    beta2 = Attr(0.999, "Share of Moments2 that is kept.", support_tensor=True)
    epsilon = Attr(1e-8, "Keeps the divisor from 0.", support_tensor=True)
    chunk_size = Attr(REQUIRED, "Paddle: elements of a block on a GPU.", type=AttrType.INT)
    weight_decay = Attr(0.0, "Coefficient of adamw.")
    use_adamw = Attr(False, "Run adamw instead of adam.")
    multi_precision = Attr(False, "Update MasterParams and round them to Params.")
    use_global_beta_pow = Attr(False, "Another op updates the powers.")
    inplace = _UPDATES
    make_grad = empty_grad
    expected_kernel_type = dtype_of("Params")

    def infer_shape(ctx: InferShapeContext) -> None:
        count = ctx.input_count("Params")
        for slot in ("Grads", "Moments1", "Moments2", "Beta1Pows", "Beta2Pows"):
            ctx.require(
                ctx.input_count(slot) == count,
                f"{count} tensors are given as Params and {ctx.input_count(slot)} as {slot}; expected as many",
            )
        for i in range(count):
            ctx.require_dims("Grads", ctx.dim("Params", i), i, why="the shape of its parameter")
        for slot, out in _UPDATES.items():
            for i in range(min(ctx.input_count(slot), ctx.output_count(out))):
                ctx.set_dim(out, ctx.dim(slot, i), i)

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        for slot, out in _UPDATES.items():
            for i in range(min(ctx.input_count(slot), ctx.output_count(out))):
                ctx.set_dtype(out, ctx.dtype(slot, i), i)
