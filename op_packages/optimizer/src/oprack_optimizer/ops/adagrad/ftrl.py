"""ftrl: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, Input, Output
from oprack.op.sbp import elementwise

from oprack_optimizer.ops._update import GRAD, LEARNING_RATE, PARAM, PARAM_OUT, UpdateRule


class Ftrl(UpdateRule, type="ftrl"):
    r"""Follow the regularised leader. With $$n = SquaredAccumulator + Grad^2$$,
    $$f(a) = a^{-lr\_power} / LearningRate$$ and
    $$z = LinearAccumulator + Grad - (f(n) - f(SquaredAccumulator)) Param$$:
    $$ParamOut = (l1 \cdot \operatorname{sign}(z) - z) / (f(n) + 2 \cdot l2)$$ where $$|z| > l1$$, else 0"""

    Param = PARAM
    SquaredAccumulator = Input("Sum of squared gradients, shape of Param.")
    LinearAccumulator = Input("z, shape of Param.")
    Grad = GRAD
    LearningRate = LEARNING_RATE
    ParamOut = PARAM_OUT
    SquaredAccumOut = Output("Updated SquaredAccumulator.")
    LinearAccumOut = Output("Updated LinearAccumulator.")
    l1 = Attr(0.0, "Weight of the absolute values.")
    l2 = Attr(0.0, "Weight of the squares.")
    lr_power = Attr(-0.5, "How fast the learning rate falls.")
    inplace = {"Param": "ParamOut", "SquaredAccumulator": "SquaredAccumOut", "LinearAccumulator": "LinearAccumOut"}
    sbp = elementwise(
        ("Param", "Grad", "SquaredAccumulator", "LinearAccumulator"), ("ParamOut", "SquaredAccumOut", "LinearAccumOut")
    )
