"""decayed_adagrad: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, Input, OpDef, Output, dtype_of, empty_grad

from oprack_optimizer.ops._update import DENSE_GRAD, LEARNING_RATE, PARAM, PARAM_OUT, infer_dtypes, infer_like

_UPDATES = {"Param": "ParamOut", "Moment": "MomentOut"}


class DecayedAdagrad(OpDef, type="decayed_adagrad"):
    r"""$$MomentOut = decay \cdot Moment + (1 - decay) Grad^2$$,
    $$ParamOut = Param - LearningRate \cdot Grad / (\sqrt{MomentOut} + epsilon)$$"""

    Param = PARAM
    Grad = DENSE_GRAD
    Moment = Input("Mean of squared gradients, shape of Param.")
    LearningRate = LEARNING_RATE
    ParamOut = PARAM_OUT
    MomentOut = Output("Updated Moment.")
    decay = Attr(0.95, "Share of Moment that is kept.")
    epsilon = Attr(1e-6, "Keeps the divisor from 0.")
    inplace = _UPDATES
    make_grad = empty_grad
    expected_kernel_type = dtype_of("Param")
    infer_shape = infer_like(_UPDATES)
    infer_var_type = infer_dtypes(_UPDATES)
