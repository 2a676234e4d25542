"""Cases of fill_diagonal: tall and wide matrices, wrapped, offsets, three dims."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase


def filled(shape, offset=0, wrap=False):
    """Zeros with nines, as NumPy fills the main diagonal."""
    out = np.zeros(shape)
    if offset:
        np.fill_diagonal(out[:, offset:] if offset > 0 else out[-offset:], 9)
    else:
        np.fill_diagonal(out, 9, wrap=wrap)
    return out


CASES = [
    OpCase(
        "fill_diagonal",
        {"X": np.zeros(shape)},
        {"value": 9.0, "offset": offset, "wrap": wrap},
        {"Out": filled(shape, offset, wrap)},
        grads=["X"],
        name=f"{shape}{offset}{wrap}",
    )
    for shape, offset, wrap in [
        ((3, 4), 0, False),
        ((3, 4), 1, False),
        ((3, 4), -1, False),
        ((6, 2), 0, False),
        ((7, 2), 0, True),
        ((2, 5), 2, False),
        ((3, 3, 3), 0, False),
    ]
]
