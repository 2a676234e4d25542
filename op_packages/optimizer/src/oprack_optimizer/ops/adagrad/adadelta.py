"""adadelta: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, Input, Output
from oprack.op.sbp import elementwise

from oprack_optimizer.ops._update import (
    DENSE_GRAD,
    LEARNING_RATE,
    MASTER,
    MASTER_OUT,
    MULTI_PRECISION,
    PARAM,
    PARAM_OUT,
    UpdateRule,
)


class Adadelta(UpdateRule, type="adadelta"):
    r"""$$a = rho \cdot AvgSquaredGrad + (1 - rho) Grad^2$$,
    $$u = -\sqrt{(AvgSquaredUpdate + epsilon) / (a + epsilon)} \cdot Grad$$,
    $$AvgSquaredUpdateOut = rho \cdot AvgSquaredUpdate + (1 - rho) u^2$$, $$ParamOut = Param + LearningRate \cdot u$$.

    Programs of Paddle 1.x have no LearningRate here; it counts as 1."""

    Param = PARAM
    Grad = DENSE_GRAD
    AvgSquaredGrad = Input("Mean of squared gradients, shape of Param.")
    AvgSquaredUpdate = Input("Mean of squared updates, shape of Param.")
    LearningRate = LEARNING_RATE
    MasterParam = MASTER
    ParamOut = PARAM_OUT
    AvgSquaredGradOut = Output("Updated AvgSquaredGrad.")
    AvgSquaredUpdateOut = Output("Updated AvgSquaredUpdate.")
    MasterParamOut = MASTER_OUT
    rho = Attr(0.95, "Share of the means that is kept.")
    epsilon = Attr(1e-6, "Keeps the divisor from 0.")
    multi_precision = MULTI_PRECISION
    inplace = {
        "Param": "ParamOut",
        "AvgSquaredGrad": "AvgSquaredGradOut",
        "AvgSquaredUpdate": "AvgSquaredUpdateOut",
        "MasterParam": "MasterParamOut",
    }
    sbp = elementwise(
        ("Param", "Grad", "AvgSquaredGrad", "AvgSquaredUpdate"),
        ("ParamOut", "AvgSquaredGradOut", "AvgSquaredUpdateOut"),
    )
