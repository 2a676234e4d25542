"""Definitions of the ops, without any array library."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of, empty_grad
from oprack.types import AttrType


class CheckFiniteAndUnscale(OpDef, type="check_finite_and_unscale"):
    r"""$$Out_i = X_i / Scale$$, and whether any X holds inf or nan"""

    X = Input("Gradients of the scaled loss.", duplicable=True)
    Scale = Input("Loss scale, one element.")
    Out = Output("Gradients of the loss; from the first one that is not finite on, 0.", duplicable=True)
    FoundInfinite = Output("One bool: a gradient is not finite, so Out is not to be used.")
    inplace = {"X": "Out"}
    make_grad = empty_grad
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dims("Out", ctx.dims("X"))
        ctx.set_dim("FoundInfinite", (1,))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        for i in range(ctx.input_count("X")):
            ctx.set_dtype("Out", ctx.dtype("X", i), i)
        ctx.set_dtype("FoundInfinite", "bool")


class CheckNumerics(OpDef, type="check_numerics"):
    r"""$$stats = (|\{x : x \ne x\}|, |\{x : |x| = \infty\}|, |\{x : x = 0\}|), \; values = (\max x, \min x,
    \operatorname{mean} x)$$

    NaN is left out of the maximum and the minimum. With check_nan_inf_level 0 a NaN or an infinity is an error; with a
    greater level it is only counted.
    """

    tensor = Input("Tensor of any shape; for complex numbers their magnitudes count.")
    stats = Output("int64 [3]: how many elements are NaN, infinite and zero.")
    values = Output("float32 [3]: the greatest, the least and the mean element.")
    op_type_ = Attr("", "The op whose result it is, for the message.")
    var_name = Attr("", "The variable, for the message.")
    check_nan_inf_level = Attr(0, "0: stop at a NaN or an infinity.")
    stack_height_limit = Attr(-1, "Paddle: lines of the call stack in the message.")
    output_dir = Attr("", "Paddle: where to log; nothing is written here.")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("stats", (3,))
        ctx.set_dim("values", (3,))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("stats", "int64")
        ctx.set_dtype("values", "float32")


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
