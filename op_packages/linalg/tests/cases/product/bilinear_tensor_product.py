"""Cases of bilinear_tensor_product."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import draw, f32

X, Y, W, B = draw(3, 2), draw(3, 4, seed=1), draw(5, 2, 4, seed=2), draw(1, 5, seed=3)
OUT = np.einsum("bm,kmn,bn->bk", X.astype("f8"), W.astype("f8"), Y.astype("f8"))

CASES = [
    OpCase(
        "bilinear_tensor_product",
        {"X": X, "Y": Y, "Weight": W, "Bias": B},
        outputs={"Out": (OUT + B).astype(f32)},
        grads=["X", "Y", "Weight", "Bias"],
        name="bias",
    ),
    OpCase("bilinear_tensor_product", {"X": X, "Y": Y, "Weight": W}, outputs={"Out": OUT.astype(f32)}, name="no_bias"),
    OpCase(
        "bilinear_tensor_product",
        {"X": X[:0], "Y": Y[:0], "Weight": W},
        outputs={"Out": np.zeros((0, 5), f32)},
        grads=["X", "Y", "Weight"],
        name="empty",
    ),
]
