"""Cases of adamw: an attribute that Paddle's CPU kernel ignores."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import grad, param, rate

MOMENTS = {"Moment1": np.zeros(2), "Moment2": np.zeros(2)}
POWERS = {"Beta1Pow": np.array([0.9]), "Beta2Pow": np.array([0.999])}
CASE = OpCase(
    "adamw",
    {"Param": param, "Grad": grad, "LearningRate": rate, **MOMENTS, **POWERS},
    {"lr_ratio": 0.2, "coeff": 0.1, "with_decay": True},
    # the first step of adam moves by the learning rate in the direction of the gradient
    {"ParamOut": param * (1 - 0.5 * 0.2 * 0.1) - 0.5 * 0.2 * np.sign(grad)},
    name="lr_ratio",
)
