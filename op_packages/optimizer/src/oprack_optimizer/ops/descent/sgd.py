"""sgd: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, Input
from oprack.op.sbp import elementwise

from oprack_optimizer.ops._update import (
    GRAD,
    LEARNING_RATE,
    MASTER,
    MASTER_OUT,
    MULTI_PRECISION,
    PARAM_OUT,
    UpdateRule,
)


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
