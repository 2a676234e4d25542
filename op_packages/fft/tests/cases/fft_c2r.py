"""Cases of fft_c2r: the whole of a Hermitian spectrum is built, and its sum is real."""

from __future__ import annotations

import itertools

import numpy as np
from oprack.testing import OpCase

from ._data import complex_, dft, f32


def whole(half: np.ndarray, size: int) -> np.ndarray:
    """Points along the last axis up to `size`: those that are missing are conjugates."""
    half = half[..., : size // 2 + 1].copy()
    half[..., 0].imag = 0
    if size % 2 == 0:
        half[..., -1].imag = 0
    return np.concatenate([half, half[..., 1 : (size + 1) // 2][..., ::-1].conj()], -1)


def case(name: str, points: int, size: int, normalization: str, forward: bool) -> OpCase:
    x = complex_(3, points)
    out = dft(whole(x, size or 2 * points - 2), (1,), normalization, forward).real.astype(f32)
    attrs = {"axes": [1], "normalization": normalization, "forward": forward, "last_dim_size": size}
    return OpCase("fft_c2r", {"X": x}, attrs, {"Out": out}, ["X"], name=name)


CASES = [
    *(
        case(f"{normalization}_{forward}_{size}", 4, size, normalization, forward)
        for normalization, forward, size in itertools.product(
            ("backward", "forward", "ortho"), (True, False), (0, 6, 7)
        )
    ),
    case("one_point", 1, 1, "backward", False),
    OpCase(
        "fft_c2r",
        {"X": complex_(2, 3, 4)},
        {"axes": [0, 1, 2], "normalization": "backward", "forward": False},
        grads=["X"],
        name="three_axes",
    ),
]
