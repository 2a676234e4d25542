"""proximal_gd: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr
from oprack.op.sbp import elementwise

from oprack_optimizer.ops._update import (
    DENSE_GRAD,
    LEARNING_RATE,
    PARAM,
    PARAM_OUT,
    UpdateRule,
)


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
