"""Cases of merged_adam: the first step of two parameters, which is one of the learning rate against each gradient."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import grad, param, rate

ONE = np.array([0.9]), np.array([0.999])
ZERO = np.zeros(2)
CASES = [
    OpCase(
        "merged_adam",
        {
            "Param": [param, -param],
            "Grad": [grad, grad],
            "LearningRate": [rate, rate],
            "Moment1": [ZERO, ZERO],
            "Moment2": [ZERO, ZERO],
            "Beta1Pow": [ONE[0], ONE[0]],
            "Beta2Pow": [ONE[1], ONE[1]],
        },
        {},
        {
            "ParamOut": [param - rate * np.sign(grad), -param - rate * np.sign(grad)],
            "Moment1Out": [0.1 * grad] * 2,
            "Moment2Out": [0.001 * grad**2] * 2,
            "Beta1PowOut": [ONE[0] * 0.9] * 2,
            "Beta2PowOut": [ONE[1] * 0.999] * 2,
        },
    )
]
