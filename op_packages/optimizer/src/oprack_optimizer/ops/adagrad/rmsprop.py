"""rmsprop: all of the op but its kernels."""

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


class RmsProp(UpdateRule, type="rmsprop"):
    r"""$$s = decay \cdot MeanSquare + (1 - decay) Grad^2$$,
    $$MomentOut = momentum \cdot Moment + LearningRate \cdot Grad / \sqrt{s + epsilon}$$, with centered
    $$\sqrt{s - m^2 + epsilon}$$ where $$m = decay \cdot MeanGrad + (1 - decay) Grad$$;
    $$ParamOut = Param - MomentOut$$"""

    Param = PARAM
    MeanSquare = Input("Mean of squared gradients, shape of Param.")
    Grad = GRAD
    Moment = Input("Running sum of updates, shape of Param.")
    LearningRate = LEARNING_RATE
    MeanGrad = Input("Mean of gradients, shape of Param; used when centered.", dispensable=True)
    MasterParam = MASTER
    ParamOut = PARAM_OUT
    MomentOut = Output("Updated Moment.")
    MeanSquareOut = Output("Updated MeanSquare.")
    MeanGradOut = Output("Updated MeanGrad.")
    MasterParamOut = MASTER_OUT
    epsilon = Attr(1e-10, "Keeps the divisor from 0.")
    decay = Attr(0.9, "Share of the means that is kept.")
    momentum = Attr(0.0, "Share of the old update that is kept.")
    centered = Attr(False, "Divide by the standard deviation.")
    multi_precision = MULTI_PRECISION
    inplace = {
        "Param": "ParamOut",
        "Moment": "MomentOut",
        "MeanSquare": "MeanSquareOut",
        "MeanGrad": "MeanGradOut",
        "MasterParam": "MasterParamOut",
    }
    sbp = elementwise(
        ("Param", "Grad", "MeanSquare", "MeanGrad", "Moment"), ("ParamOut", "MomentOut", "MeanSquareOut", "MeanGradOut")
    )
