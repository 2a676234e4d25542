"""Cases of lrn: channels first, more channels in the sum than there are, an empty batch."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

X = np.random.default_rng(5).standard_normal((2, 5, 2, 3)).astype(np.float64)


def _expected(x: np.ndarray, n: int, k: float, alpha: float, beta: float) -> dict[str, np.ndarray]:
    channels = np.arange(x.shape[1])
    near = np.abs(channels[:, None] - channels) <= n // 2
    mid = k + alpha * np.einsum("cj,njhw->nchw", near, x.astype(np.float64) ** 2)
    return {"Out": x * mid**-beta, "MidOut": mid}


CASES = [
    OpCase(
        "lrn",
        {"X": x},
        {"n": n, "k": 1.5, "alpha": 0.1, "beta": 0.75, "data_format": "NCHW"},
        _expected(x, n, 1.5, 0.1, 0.75),
        grads=grads,
        name=name,
    )
    for name, x, n, grads in (("5", X, 5, ["X"]), ("15", X, 15, ["X"]), ("1", X, 1, ["X"]), ("empty", X[:0], 3, []))
]
