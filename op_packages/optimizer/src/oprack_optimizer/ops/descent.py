"""Definitions of plain gradient descent, also with a proximal step or with noise."""

from __future__ import annotations

from oprack.op import Attr, Input
from oprack.op.sbp import elementwise

from oprack_optimizer.ops._update import (
    DENSE_GRAD,
    GRAD,
    LEARNING_RATE,
    MASTER,
    MASTER_OUT,
    MULTI_PRECISION,
    PARAM,
    PARAM_OUT,
    UpdateRule,
)


class Dpsgd(UpdateRule, type="dpsgd"):
    r"""Differentially private SGD:
    $$ParamOut = Param - LearningRate (Grad \cdot \min(1, clip / \|Grad\|) + \mathcal N(0, sigma^2) / batch\_size)$$"""

    Param = PARAM
    Grad = DENSE_GRAD
    LearningRate = LEARNING_RATE
    ParamOut = PARAM_OUT
    clip = Attr(10.0, "Largest norm of the gradient.")
    batch_size = Attr(16.0, "Samples in a batch.")
    sigma = Attr(1.0, "Standard deviation of the noise.")
    seed = Attr(0, "Seed of the noise; 0: the program's.")
    inplace = {"Param": "ParamOut"}


class ProximalGD(UpdateRule, type="proximal_gd"):
    r"""$$x = Param - LearningRate \cdot Grad$$,
    $$ParamOut = \operatorname{sign}(x) \max(|x| - LearningRate \cdot l1, 0) / (1 + LearningRate \cdot l2)$$"""

    Param = PARAM
    Grad = DENSE_GRAD
    LearningRate = LEARNING_RATE
    ParamOut = PARAM_OUT
    l1 = Attr(0.0, "Weight of the absolute values.")
    l2 = Attr(0.0, "Weight of the squares.")
    inplace = {"Param": "ParamOut"}
    sbp = elementwise(("Param", "Grad"), ("ParamOut",))


class Sgd(UpdateRule, type="sgd"):
    r"""$$ParamOut = Param - LearningRate \cdot Grad$$"""

    Param = Input("Parameter, dense or SelectedRows.")
    LearningRate = LEARNING_RATE
    Grad = GRAD
    MasterParam = MASTER
    ParamOut = PARAM_OUT
    MasterParamOut = MASTER_OUT
    multi_precision = MULTI_PRECISION
    use_mkldnn = Attr(False, "Run oneDNN's kernel where its plugin is installed.", extra=True)
    inplace = {"Param": "ParamOut", "MasterParam": "MasterParamOut"}
    sbp = elementwise(("Param", "Grad"), ("ParamOut",))
