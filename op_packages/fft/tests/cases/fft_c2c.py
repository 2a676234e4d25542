"""Cases of fft_c2c."""

from __future__ import annotations

import itertools

from oprack.testing import OpCase

from ._data import c64, complex_, dft

X = complex_(2, 5, 4)

CASES = [
    *(
        OpCase(
            "fft_c2c",
            {"X": X},
            {"axes": list(axes), "normalization": normalization, "forward": forward},
            {"Out": dft(X, axes, normalization, forward).astype(c64)},
            ["X"],
            name=f"{normalization}_{forward}_{len(axes)}",
        )
        for normalization, forward, axes in itertools.product(
            ("backward", "forward", "ortho"), (True, False), ((1,), (-1, 0), (0, 1, 2))
        )
    ),
    OpCase(
        "fft_c2c",
        {"X": X},
        {"axes": [], "normalization": "backward", "forward": True},
        {"Out": X},
        ["X"],
        name="no_axis",
    ),
    OpCase(
        "fft_c2c",
        {"X": X[:0]},
        {"axes": [1], "normalization": "backward", "forward": True},
        {"Out": X[:0]},
        name="empty",
    ),
]
