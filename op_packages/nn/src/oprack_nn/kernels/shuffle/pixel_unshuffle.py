"""Kernels of pixel_unshuffle and its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import ALL_DTYPES

from oprack_nn.kernels.shuffle._family import PLACES, downscaled, upscaled


@kernel("pixel_unshuffle", place=PLACES, dtypes=ALL_DTYPES)
def pixel_unshuffle(X: Array, *, downscale_factor: int, data_format: str, xp: ArrayModule) -> Array:
    return downscaled(X, downscale_factor, data_format, xp) if downscale_factor > 1 else X.copy()


@kernel("pixel_unshuffle_grad", place=PLACES, dtypes=ALL_DTYPES)
def pixel_unshuffle_grad(Out_grad: Array, *, downscale_factor: int, data_format: str, xp: ArrayModule) -> Array:
    return upscaled(Out_grad, downscale_factor, data_format, xp) if downscale_factor > 1 else Out_grad.copy()
