"""adamax: all of the op but its kernels."""

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


class Adamax(UpdateRule, type="adamax"):
    r"""$$MomentOut = beta1 \cdot Moment + (1 - beta1) Grad$$,
    $$InfNormOut = \max(|Grad|, beta2 \cdot InfNorm + epsilon)$$,
    $$ParamOut = Param - \frac{LearningRate}{1 - Beta1Pow} \cdot MomentOut / InfNormOut$$"""

    Param = PARAM
    Grad = DENSE_GRAD
    LearningRate = LEARNING_RATE
    Moment = Input("Mean of the gradients, shape of Param.")
    InfNorm = Input("Decayed maximum of the gradients, shape of Param.")
    Beta1Pow = Input("Power of beta1 for this step; another op updates it.")
    MasterParam = MASTER
    ParamOut = PARAM_OUT
    MomentOut = Output("Updated Moment.")
    InfNormOut = Output("Updated InfNorm.")
    MasterParamOut = MASTER_OUT
    beta1 = Attr(0.9, "Share of Moment that is kept.")
    beta2 = Attr(0.999, "Share of InfNorm that is kept.")
    epsilon = Attr(1e-8, "Keeps the divisor from 0.")
    multi_precision = MULTI_PRECISION
    inplace = {"Param": "ParamOut", "Moment": "MomentOut", "InfNorm": "InfNormOut", "MasterParam": "MasterParamOut"}
    sbp = elementwise(("Param", "Grad", "Moment", "InfNorm"), ("ParamOut", "MomentOut", "InfNormOut"))
