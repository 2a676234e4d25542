"""update_loss_scaling: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of, empty_grad
from oprack.types import AttrType

_STATE = {"PrevLossScaling": "LossScaling", "InGoodSteps": "OutGoodSteps", "InBadSteps": "OutBadSteps"}


class UpdateLossScaling(OpDef, type="update_loss_scaling"):
    r"""Adapts the scale s = PrevLossScaling of the loss: $$LossScaling = s \cdot incr\_ratio$$ after incr_every_n_steps
    finite steps in a row (s where that is not finite), $$LossScaling = \max(s \cdot decr\_ratio, 1)$$ after
    decr_every_n_nan_or_inf bad ones in a row, else s.

    $$Out_i = 0$$ for all i where FoundInfinite, else $$X_i$$. With StopUpdate or stop_update the scale and both counts
    of steps stay.
    """

    X = Input("Gradients.", duplicable=True)
    FoundInfinite = Input("One bool: a gradient is not finite.")
    PrevLossScaling = Input("Loss scale, one element.")
    InGoodSteps = Input("Finite steps in a row, int32.")
    InBadSteps = Input("Bad steps in a row, int32.")
    StopUpdate = Input("One bool that overrides `stop_update`.", dispensable=True)
    Out = Output("Gradients, or 0 after a bad step.", duplicable=True)
    LossScaling = Output("Updated loss scale.")
    OutGoodSteps = Output("Updated InGoodSteps.")
    OutBadSteps = Output("Updated InBadSteps.")
    incr_every_n_steps = Attr(REQUIRED, "Finite steps before the scale grows.", type=AttrType.INT)
    decr_every_n_nan_or_inf = Attr(REQUIRED, "Bad steps before the scale shrinks.", type=AttrType.INT)
    incr_ratio = Attr(REQUIRED, "Factor of growth.", type=AttrType.FLOAT).greater_than(1.0)
    decr_ratio = Attr(REQUIRED, "Factor of shrinking.", type=AttrType.FLOAT).between(0.0, 1.0)
    stop_update = Attr(False, "Leave scale and counts as they are.")
    inplace = {"X": "Out", **_STATE}
    make_grad = empty_grad
    # a program may scale a loss without any gradient to check yet
    expected_kernel_type = dtype_of("X", "PrevLossScaling")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dims("Out", ctx.dims("X"))
        for i in range(ctx.input_count("X")):
            ctx.share_lod("X", "Out", i, i)
        for x, out in _STATE.items():
            ctx.set_dim(out, ctx.dim(x))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        for i in range(ctx.input_count("X")):
            ctx.set_dtype("Out", ctx.dtype("X", i), i)
        for x, out in _STATE.items():
            if ctx.has_output(out):
                ctx.set_dtype(out, ctx.dtype(x))
