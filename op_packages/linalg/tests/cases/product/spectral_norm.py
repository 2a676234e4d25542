"""Cases of spectral_norm. Without rounds U and V are what they are, and sigma is linear in Weight."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import draw, f32

W, U, V = draw(3, 2, 4), draw(2, seed=1), draw(12, seed=2)
SIGMA = np.einsum("i,aib,ab->", U.astype("f8"), W.astype("f8"), V.reshape(3, 4).astype("f8"))
MATRIX = draw(4, 3).astype("f8")
GREATEST = np.linalg.svd(MATRIX, compute_uv=False)[0]

CASES = [
    OpCase(
        "spectral_norm",
        {"Weight": W, "U": U, "V": V},
        {"dim": 1, "power_iters": 0},
        {"Out": (W / SIGMA).astype(f32)},
        ["Weight"],
        name="no_rounds",
    ),
    OpCase(
        "spectral_norm", {"Weight": W, "U": U, "V": V}, {"dim": 1, "power_iters": 3}, grads=["Weight"], name="rounds"
    ),
    OpCase(
        "spectral_norm",
        {"Weight": MATRIX.astype(f32), "U": draw(4, seed=1), "V": draw(3, seed=2)},
        {"power_iters": 60},
        {"Out": (MATRIX / GREATEST).astype(f32)},
        ["Weight"],
        name="converged",
    ),
]
