"""Kernels of frame and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import COMPLEX, FLOATS

from oprack_fft.kernels._frames import frames_of, sum_of_frames

DTYPES = FLOATS | COMPLEX | {"int32", "int64"}


@kernel("frame", place=("cpu", "cuda"), dtypes=DTYPES)
def frame(X: Array, *, frame_length: int, hop_length: int, axis: int, xp: ArrayModule) -> Array:
    """A copy of each frame."""
    if axis == 0:
        frames = xp.moveaxis(frames_of(xp.moveaxis(X, 0, -1), frame_length, hop_length, xp), (-2, -1), (0, 1))
    else:
        frames = frames_of(X, frame_length, hop_length, xp).swapaxes(-1, -2)
    return frames.copy()


@kernel("frame_grad", place=("cpu", "cuda"), dtypes=DTYPES)
def frame_grad(X: Array, Out_grad: Array, *, hop_length: int, axis: int, xp: ArrayModule) -> Array:
    """The sum of the gradients of all frames."""
    if axis == 0:
        frames = xp.moveaxis(Out_grad, (0, 1), (-2, -1))
        return xp.moveaxis(sum_of_frames(frames, hop_length, X.shape[0], xp), -1, 0)
    return sum_of_frames(Out_grad.swapaxes(-1, -2), hop_length, X.shape[-1], xp)
