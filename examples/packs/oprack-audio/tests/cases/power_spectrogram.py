"""Cases of power_spectrogram; expected outputs are sums as in its formula, frame by frame."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

random = np.random.default_rng(0)


def expected(x: np.ndarray, window: np.ndarray, hop: int) -> np.ndarray:
    """The formula, with a matrix of e^(-2 pi i k n / N)."""
    n = len(window)
    turns = np.exp(-2j * np.pi * np.outer(np.arange(n // 2 + 1), np.arange(n)) / n)
    starts = range(0, x.shape[-1] - n + 1, hop)
    spectra = [(x[..., s : s + n] * window) @ turns.T for s in starts]
    return np.stack([np.abs(s) ** 2 for s in spectra], axis=-1)


def case(name: str, shape: tuple[int, ...], length: int, hop: int, dtype: str = "float64") -> OpCase:
    """A case with random signals and a random window."""
    x, window = random.normal(size=shape), random.uniform(0.1, 1, length)
    out = expected(x, window, hop).astype(dtype)
    inputs = {"X": x.astype(dtype), "Window": window.astype(dtype)}
    rtol = 1e-5 if dtype == "float64" else 1e-4
    return OpCase("power_spectrogram", inputs, {"hop": hop}, {"Out": out}, ["X", "Window"], name, rtol, rtol)


CASES = [
    case("frames that overlap", (40,), 8, 3),
    case("odd length", (2, 30), 7, 2),
    case("gaps between frames", (2, 30), 4, 6),
    case("one frame", (9,), 9, 5),
    case("float32", (3, 2, 64), 16, 8, "float32"),
    OpCase(
        "power_spectrogram",
        {"X": np.zeros((0, 20)), "Window": np.ones(6)},
        {"hop": 4},
        {"Out": np.zeros((0, 4, 4))},
        name="no signal",
    ),
    # of one frame of two samples: Out = [(a + b)^2, (a - b)^2], here with a = 3, b = 1 and a window of ones
    OpCase(
        "power_spectrogram_grad",
        {"X": np.array([3.0, 1.0]), "Window": np.ones(2), "Out@GRAD": np.array([[1.0], [10.0]])},
        {"hop": 1},
        {"X@GRAD": np.array([2 * 4 + 10 * 2 * 2, 2 * 4 - 10 * 2 * 2.0]), "Window@GRAD": np.array([3 * 48.0, -32.0])},
    ),
]
