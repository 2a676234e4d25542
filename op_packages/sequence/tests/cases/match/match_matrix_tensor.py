"""Cases of match_matrix_tensor: X and Y that differ in width, and an empty sequence."""

from __future__ import annotations

import numpy as np
from oprack import LoDTensor
from oprack.testing import OpCase

RNG = np.random.default_rng(0)
X, Y, W = RNG.standard_normal((5, 3)), RNG.standard_normal((4, 2)), RNG.standard_normal((3, 2, 2))
PAIRS = [(slice(0, 2), slice(0, 3)), (slice(2, 2), slice(3, 4)), (slice(2, 5), slice(3, 4))]
OUT = np.concatenate([np.einsum("id,dte,je->tij", X[a], W, Y[b]).reshape(-1, 1) for a, b in PAIRS])
CASES = [
    OpCase(
        "match_matrix_tensor",
        {"X": LoDTensor(X, [[0, 2, 2, 5]]), "Y": LoDTensor(Y, [[0, 3, 3, 4]]), "W": W},
        {"dim_t": 2},
        {"Out": LoDTensor(OUT, [[0, 12, 12, 18]])},
        grads=["X", "Y", "W"],
    )
]
