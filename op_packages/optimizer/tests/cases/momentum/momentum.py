"""Cases of momentum: an attribute that Paddle's CPU kernel ignores."""

from __future__ import annotations

from oprack.testing import OpCase

from .._data import grad, param, rate, velocity

MOVED = 0.5 * velocity + 0.5 * grad
CASE = OpCase(
    "momentum",
    {"Param": param, "Grad": grad, "Velocity": velocity, "LearningRate": rate},
    {"mu": 0.5, "rescale_grad": 0.5},
    {"ParamOut": param - 0.5 * MOVED, "VelocityOut": MOVED},
    name="rescaled",
)
