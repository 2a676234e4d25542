"""Kernels of pixel_shuffle and its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import ALL_DTYPES

from oprack_nn.kernels.shuffle._family import PLACES, downscaled, upscaled


@kernel("pixel_shuffle", place=PLACES, dtypes=ALL_DTYPES)
def pixel_shuffle(X: Array, *, upscale_factor: int, data_format: str, xp: ArrayModule) -> Array:
    return upscaled(X, upscale_factor, data_format, xp) if upscale_factor > 1 else X.copy()


@kernel("pixel_shuffle_grad", place=PLACES, dtypes=ALL_DTYPES)
def pixel_shuffle_grad(Out_grad: Array, *, upscale_factor: int, data_format: str, xp: ArrayModule) -> Array:
    return downscaled(Out_grad, upscale_factor, data_format, xp) if upscale_factor > 1 else Out_grad.copy()
