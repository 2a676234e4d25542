"""proximal_adagrad (Paddle 1.x): all of the op but its kernels."""

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


class ProximalAdagrad(UpdateRule, type="proximal_adagrad"):
    r"""$$MomentOut = Moment + Grad^2$$, $$x = Param - LearningRate \cdot Grad / \sqrt{MomentOut}$$,
    $$ParamOut = \operatorname{sign}(x) \max(|x| - LearningRate \cdot l1, 0) / (1 + LearningRate \cdot l2)$$"""

    Param = PARAM
    Moment = Input("Sum of squared gradients, shape of Param.")
    Grad = DENSE_GRAD
    LearningRate = LEARNING_RATE
    ParamOut = PARAM_OUT
    MomentOut = Output("Updated Moment.")
    l1 = Attr(0.0, "Weight of the absolute values.")
    l2 = Attr(0.0, "Weight of the squares.")
    inplace = {"Param": "ParamOut", "Moment": "MomentOut"}
    sbp = elementwise(("Param", "Grad", "Moment"), ("ParamOut", "MomentOut"))
