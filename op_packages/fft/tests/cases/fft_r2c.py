"""Cases of fft_r2c."""

from __future__ import annotations

import itertools

import numpy as np
from oprack.testing import OpCase

from ._data import c64, dft, real

X = real(4, 5, 2)


def case(name: str, x: np.ndarray, axes: tuple[int, ...], normalization: str, forward: bool, onesided: bool) -> OpCase:
    out, last = dft(x, axes, normalization, forward), axes[-1] % x.ndim
    if onesided:
        out = np.take(out, range(x.shape[last] // 2 + 1), last)
    attrs = {"axes": list(axes), "normalization": normalization, "forward": forward, "onesided": onesided}
    return OpCase("fft_r2c", {"X": x}, attrs, {"Out": out.astype(c64)}, ["X"], name=name)


CASES = [
    *(
        case(f"{normalization}_{forward}_{onesided}_{axes[-1] + 3}", X, axes, normalization, forward, onesided)
        for normalization, forward, onesided, axes in itertools.product(
            ("backward", "forward", "ortho"), (True, False), (True, False), ((0,), (2, -2))
        )
    ),
    case("one_point", X[:1], (0,), "backward", True, True),
    case("empty", X[:, :, :0], (0, 1), "backward", True, True),
]
