"""Transforms are linear, so that the gradient of a gradient is the transform itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import oprack
import pytest
from oprack import functional as F

X = np.random.default_rng(0).standard_normal((3, 8))
WINDOW = oprack.to_tensor(np.hanning(6)[1:5])
BACK = {"axes": [0, 1], "normalization": "ortho", "forward": False}

LINEAR: dict[str, Callable[[Any], Any]] = {
    "fft_r2c": lambda x: F.as_real(F.fft_r2c(x, axes=[0, 1], normalization="ortho", forward=True, onesided=True)),
    "fft_c2c": lambda x: F.as_real(F.fft_c2c(F.as_complex(x), axes=[0, 1], normalization="forward", forward=True)),
    "fft_c2r": lambda x: F.fft_c2r(F.as_complex(x), **BACK, last_dim_size=5),
    "frame": lambda x: F.frame(x, frame_length=4, hop_length=3),
    "overlap_add": lambda x: F.overlap_add(x, hop_length=2),
    "stft": lambda x: F.as_real(F.stft(x, WINDOW, n_fft=4, hop_length=2, normalized=True, onesided=True)),
}


@pytest.mark.parametrize("op_type", LINEAR)
def test_second_gradient_is_the_slope_of_the_first(op_type: str) -> None:
    # squared, since the second gradient of a linear function alone is zero
    x = X.reshape(4, 3, 2) if op_type.startswith("fft_c") else X
    assert oprack.gradcheck(lambda x: F.square(LINEAR[op_type](x)), [x], order=2) == []


def test_there_and_back_again() -> None:
    x = oprack.to_tensor(X)
    spectrum = F.fft_r2c(x, axes=[0, 1], normalization="backward", forward=True, onesided=True)
    back = F.fft_c2r(spectrum, axes=[0, 1], normalization="backward", forward=False, last_dim_size=8)
    np.testing.assert_allclose(back.numpy(), X, atol=1e-12)
