"""Cases of stft."""

from __future__ import annotations

import itertools

import numpy as np
from oprack.testing import OpCase

from ._data import c64, dft, real

X = real(2, 11)


def case(size: int, hop: int, normalized: bool, onesided: bool) -> OpCase:
    window = real(size, seed=1)
    frames = np.stack([X[:, s : s + size] * window for s in range(0, X.shape[1] - size + 1, hop)], -1)
    out = dft(frames, (1,), "ortho" if normalized else "backward")
    out = out[:, : size // 2 + 1] if onesided else out
    attrs = {"n_fft": size, "hop_length": hop, "normalized": normalized, "onesided": onesided}
    name = f"{size}_{hop}_{normalized}_{onesided}"
    return OpCase("stft", {"X": X, "Window": window}, attrs, {"Out": out.astype(c64)}, ["X"], name=name)


CASES = [
    case(size, hop, normalized, onesided)
    for (size, hop), normalized, onesided in itertools.product(((4, 2), (5, 7)), (True, False), (True, False))
]
