"""Kernels of stft and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import COMPLEX, FLOATS

from oprack_fft.kernels._frames import frames_of, sum_of_frames
from oprack_fft.kernels._transform import c2c, r2c, r2c_adjoint


@kernel("stft", place=("cpu", "cuda"), dtypes=FLOATS)
def stft(
    X: Array, Window: Array, *, n_fft: int, hop_length: int, normalized: bool, onesided: bool, xp: ArrayModule
) -> Array:
    """The transform of each frame."""
    frames = frames_of(X, n_fft, hop_length, xp) * Window
    spectra = (r2c if onesided else c2c)(frames, [-1], "ortho" if normalized else "backward", True, xp)
    return xp.ascontiguousarray(spectra.swapaxes(-1, -2))


@kernel("stft_grad", place=("cpu", "cuda"), dtypes=FLOATS | COMPLEX)
def stft_grad(
    X: Array, Window: Array, Out_grad: Array, *, n_fft: int, hop_length: int, normalized: bool, xp: ArrayModule
) -> Array:
    """The sum of what the frames get."""
    gradient = Out_grad.swapaxes(-1, -2)
    frames = r2c_adjoint(gradient, n_fft, [-1], "ortho" if normalized else "backward", True, xp) * Window
    return sum_of_frames(frames, hop_length, X.shape[-1], xp)
