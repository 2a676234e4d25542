"""Cases of fused_softplus."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import draw
from ._post import ACTIVATIONS

X = draw(3, 4)
PLAIN = np.log1p(np.exp(2.0 * X)) / 2

CASES = [
    OpCase(
        "fused_softplus",
        {"X": X},
        {"beta": 2.0, "fuse_activation": name, "fuse_alpha": ACTIVATIONS[name][0], "fuse_beta": ACTIVATIONS[name][1]},
        {"Out": ACTIVATIONS[name][2](PLAIN).astype("f4")},
        name=name or "plain",
    )
    for name in ("", "tanh", "sqrt", "clip")
]
