"""Definitions of rules with a rate for each element, by the squares of its gradients."""

from __future__ import annotations

from oprack.op import Attr, Input, Output
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


class DecayedAdagrad(UpdateRule, type="decayed_adagrad"):
    r"""$$MomentOut = decay \cdot Moment + (1 - decay) Grad^2$$,
    $$ParamOut = Param - LearningRate \cdot Grad / (\sqrt{MomentOut} + epsilon)$$"""

    Param = PARAM
    Grad = DENSE_GRAD
    Moment = Input("Mean of squared gradients, shape of Param.")
    LearningRate = LEARNING_RATE
    ParamOut = PARAM_OUT
    MomentOut = Output("Updated Moment.")
    decay = Attr(0.95, "Share of Moment that is kept.")
    epsilon = Attr(1e-6, "Keeps the divisor from 0.")
    inplace = {"Param": "ParamOut", "Moment": "MomentOut"}
    sbp = elementwise(("Param", "Grad", "Moment"), ("ParamOut", "MomentOut"))


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


# proximal_adagrad (Paddle 1.x): all of the op but its kernels.
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
