"""Cases of fused_elementwise_mul: activations, a factor and a new dim, and Y that broadcasts."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._data import draw
from ._post import ACTIVATIONS

X, Y = draw(2, 3, 4), draw(2, 3, 4, seed=1) + np.float32(4)

CASES = [
    OpCase(
        "fused_elementwise_mul",
        {"X": X, "Y": Y},
        {"fuse_activation": name, "fuse_alpha": ACTIVATIONS[name][0], "fuse_beta": ACTIVATIONS[name][1]},
        {"Out": ACTIVATIONS[name][2](X * Y).astype("f4")},
        name=name or "plain",
    )
    for name in ("mish", "relu", "relu6", "sigmoid")
]
CASES.append(
    OpCase(
        "fused_elementwise_mul",
        {"X": X, "Y": Y[0, :, 0]},
        {"axis": 1, "fused_output_scale": 0.5, "fused_unsqueeze2_axes": [1]},
        {"Out": ((X * Y[0, :, :1]) / 2).astype("f4")[:, None]},
        name="unsqueezed",
    )
)
