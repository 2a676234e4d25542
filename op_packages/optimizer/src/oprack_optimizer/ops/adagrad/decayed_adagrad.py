"""decayed_adagrad: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, Input, Output
from oprack.op.sbp import elementwise

from oprack_optimizer.ops._update import (
    DENSE_GRAD,
    LEARNING_RATE,
    PARAM,
    PARAM_OUT,
    UpdateRule,
)


class DecayedAdagrad(UpdateRule, type="decayed_adagrad"):
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
    inplace = {"Param": "ParamOut", "Moment": "MomentOut"}
    sbp = elementwise(("Param", "Grad", "Moment"), ("ParamOut", "MomentOut"))
