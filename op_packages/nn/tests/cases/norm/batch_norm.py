"""Cases of batch_norm."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from ._family import EPSILON, second_gradients

AXES = (0, 2, 3)
GIVEN = np.array([0.5, -1.0, 0.25]), np.array([1.0, 2.0, 0.5])


def second_gradient(name, stats):
    """With the statistics of the batch, or with given ones."""
    x, scale, dy, ddx, ddscale, ddbias, expected = second_gradients(AXES, stats)
    running = {} if stats is None else {"Mean": stats[0], "Variance": stats[1]}
    saved = {"SavedMean": x.mean(axis=AXES), "SavedVariance": 1 / np.sqrt(x.var(axis=AXES) + EPSILON)}
    return OpCase(
        "batch_norm_grad_grad",
        {"X": x, "Scale": scale, **running, **saved} | {"DY": dy, "DDX": ddx, "DDScale": ddscale, "DDBias": ddbias},
        {"use_global_stats": stats is not None},
        dict(zip(("DX", "DScale", "DDY"), expected, strict=True)),
        name=name,
    )


CASES = [second_gradient("batch", None), second_gradient("global", GIVEN)]
