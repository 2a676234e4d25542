"""adagrad: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, Input, Output
from oprack.op.sbp import elementwise

from oprack_optimizer.ops._update import (
    GRAD,
    LEARNING_RATE,
    MASTER,
    MASTER_OUT,
    MULTI_PRECISION,
    PARAM,
    PARAM_OUT,
    UpdateRule,
)


class Adagrad(UpdateRule, type="adagrad"):
    r"""$$MomentOut = Moment + Grad^2$$,
    $$ParamOut = Param - LearningRate \cdot Grad / (\sqrt{MomentOut} + epsilon)$$"""

    Param = PARAM
    Grad = GRAD
    Moment = Input("Sum of squared gradients, shape of Param.")
    LearningRate = LEARNING_RATE
    MasterParam = MASTER
    ParamOut = PARAM_OUT
    MomentOut = Output("Updated Moment.")
    MasterParamOut = MASTER_OUT
    epsilon = Attr(1e-6, "Keeps the divisor from 0.")
    multi_precision = MULTI_PRECISION
    inplace = {"Param": "ParamOut", "Moment": "MomentOut", "MasterParam": "MasterParamOut"}
    sbp = elementwise(("Param", "Grad", "Moment"), ("ParamOut", "MomentOut"))
