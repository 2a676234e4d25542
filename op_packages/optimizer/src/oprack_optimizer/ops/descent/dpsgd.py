"""dpsgd: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr

from oprack_optimizer.ops._update import (
    DENSE_GRAD,
    LEARNING_RATE,
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
