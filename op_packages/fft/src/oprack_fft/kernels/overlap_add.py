"""Kernels of overlap_add and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_fft.kernels._frames import sum_of_frames
from oprack_fft.kernels.frame import DTYPES, frame


@kernel("overlap_add", place=("cpu", "cuda"), dtypes=DTYPES)
def overlap_add(X: Array, *, hop_length: int, axis: int, xp: ArrayModule) -> Array:
    """The sum of all frames."""
    if axis == 0:
        size = (X.shape[0] - 1) * hop_length + X.shape[1]
        return xp.moveaxis(sum_of_frames(xp.moveaxis(X, (0, 1), (-2, -1)), hop_length, size, xp), -1, 0)
    size = (X.shape[-1] - 1) * hop_length + X.shape[-2]
    return sum_of_frames(X.swapaxes(-1, -2), hop_length, size, xp)


@kernel("overlap_add_grad", place=("cpu", "cuda"), dtypes=DTYPES)
def overlap_add_grad(X: Array, Out_grad: Array, *, hop_length: int, axis: int, xp: ArrayModule) -> Array:
    """The frames of the gradient."""
    length = X.shape[1] if axis == 0 else X.shape[-2]
    return frame(Out_grad, frame_length=length, hop_length=hop_length, axis=axis, xp=xp)
