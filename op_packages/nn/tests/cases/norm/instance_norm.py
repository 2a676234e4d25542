"""Cases of instance_norm."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from ._family import EPSILON, second_gradients

X, SCALE, DY, DDX, DDSCALE, DDBIAS, EXPECTED = second_gradients((2, 3), None)
CASES = [
    OpCase(
        "instance_norm_double_grad",
        {
            "x": X,
            "fwd_scale": SCALE,
            "saved_mean": X.mean(axis=(2, 3)).reshape(-1),
            "saved_variance": 1 / np.sqrt(X.var(axis=(2, 3)) + EPSILON).reshape(-1),
            "grad_y": DY,
            "grad_x@GRAD": DDX,
            "grad_scale@GRAD": DDSCALE,
            "grad_bias@GRAD": DDBIAS,
        },
        {},
        dict(zip(("x@GRAD", "fwd_scale@GRAD", "grad_y@GRAD"), EXPECTED, strict=True)),
    )
]
