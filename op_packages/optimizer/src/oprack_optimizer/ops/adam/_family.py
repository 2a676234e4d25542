"""What definitions of adam and its relatives share, in the order of their OpProtos."""

from __future__ import annotations

from oprack.op import Attr, Input, Output
from oprack.types import AttrType

from oprack_optimizer.ops._update import (
    GRAD,
    LEARNING_RATE,
    MASTER,
    MASTER_OUT,
    PARAM,
    PARAM_OUT,
    SKIP,
    UpdateRule,
)

BETA_1 = Attr(0.9, "Share of Moment1 that is kept.").between(0.0, 1.0)
BETA_2 = Attr(0.999, "Share of Moment2 that is kept.").between(0.0, 1.0)
LAZY_MODE = Attr(False, "Update only the rows of a SelectedRows gradient.")
MULTITHREAD_ROWS = Attr(1000, "Kept for old programs.", type=AttrType.LONG)
GLOBAL_BETA_POW = Attr(False, "Another op updates the powers.")
ADAM_UPDATES = {
    "Param": "ParamOut",
    "Moment1": "Moment1Out",
    "Moment2": "Moment2Out",
    "Beta1Pow": "Beta1PowOut",
    "Beta2Pow": "Beta2PowOut",
    "MasterParam": "MasterParamOut",
}


class MomentsRule(UpdateRule):
    """A rule with adam's state: two moments, and the powers of the shares that they keep."""

    Param = PARAM
    Grad = GRAD
    LearningRate = LEARNING_RATE
    Moment1 = Input("Mean of the gradients, shape of Param.")
    Moment2 = Input("Mean of their squares, shape of Param.")
    Beta1Pow = Input("Power of beta1 for this step; starts at beta1.")
    Beta2Pow = Input("Power of beta2 for this step; starts at beta2.")
    MasterParam = MASTER
    SkipUpdate = SKIP
    ParamOut = PARAM_OUT
    Moment1Out = Output("Updated Moment1.")
    Moment2Out = Output("Updated Moment2.")
    Beta1PowOut = Output("Beta1Pow for the next step.")
    Beta2PowOut = Output("Beta2Pow for the next step.")
    MasterParamOut = MASTER_OUT
    inplace = ADAM_UPDATES


class AdamBase(MomentsRule):
    """adam and adamw, whose shares and epsilon may be tensors."""

    Beta1Tensor = Input("One element that overrides `beta1`.", dispensable=True)
    Beta2Tensor = Input("One element that overrides `beta2`.", dispensable=True)
    EpsilonTensor = Input("One element that overrides `epsilon`.", dispensable=True)
    beta1 = BETA_1
    beta2 = BETA_2
    epsilon = Attr(1e-8, "Keeps the divisor from 0.")
