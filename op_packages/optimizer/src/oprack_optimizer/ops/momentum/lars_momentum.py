"""lars_momentum: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, Input

from oprack_optimizer.ops._update import MULTI_PRECISION
from oprack_optimizer.ops.momentum._family import RESCALE_GRAD, ManyParametersRule


class LarsMomentum(ManyParametersRule, type="lars_momentum"):
    r"""Momentum with a learning rate per parameter:
    $$lr = LearningRate \cdot \frac{lars\_coeff \|Param\|}{\|Grad\| + d \|Param\| + epsilon}$$ with weight decay d,
    $$VelocityOut = mu \cdot Velocity + lr (Grad + d \cdot Param)$$, $$ParamOut = Param - VelocityOut$$"""

    LearningRate = Input("Their learning rates.", duplicable=True)
    lars_coeff = Attr(0.001, "Trust in the norm of a parameter.")
    lars_weight_decay = Attr([0.0005], "Weight decay: one number, or one per parameter.")
    epsilon = Attr(0.0, "Keeps the divisor from 0.")
    multi_precision = MULTI_PRECISION
    rescale_grad = RESCALE_GRAD
