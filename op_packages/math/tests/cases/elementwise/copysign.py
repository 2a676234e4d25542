"""Cases of copysign: zeros and NaN have a sign as well; a zero has no gradient."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

X, Y = np.array([[1.5, -2.0], [-0.0, 3.0]]), np.array([-0.0, 7.0])
CASES = [
    OpCase("copysign", {"x": X, "y": Y}, outputs={"out": np.array([[-1.5, 2.0], [-0.0, 3.0]])}, name="broadcast"),
    OpCase(
        "copysign",
        {"x": np.array([1.0, np.inf, np.nan]), "y": np.array([-np.nan, -1.0, 2.0])},
        outputs={"out": np.array([-1.0, -np.inf, np.nan])},
        name="specials",
    ),
    OpCase(
        "copysign_grad",
        {"x": X, "y": Y, "out@GRAD": np.array([[1.0, 2.0], [3.0, 4.0]])},
        outputs={"x@GRAD": np.array([[-1.0, -2.0], [0.0, 4.0]]), "y@GRAD": np.zeros(2)},
    ),
    OpCase("copysign", {"x": np.array([1.5, -2.5]), "y": np.array([[-1.0], [2.0]])}, grads=["x"], name="slope"),
    OpCase("copysign", {"x": np.zeros((0, 3)), "y": np.ones(3)}, outputs={"out": np.zeros((0, 3))}, name="empty"),
]
