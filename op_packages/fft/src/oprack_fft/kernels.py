"""Kernels in NumPy, most of them for CuPy as well."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import COMPLEX, FLOATS


# frames ---------------------------------------------------------------------------------------------------------------
# Frames of a signal, and the sum of frames.
def frames_of(x: Array, length: int, hop: int, xp: ArrayModule) -> Array:
    """[..., F, length]: a view of x [..., N] with a frame in each row."""
    count = 1 + (x.shape[-1] - length) // hop
    strides = (*x.strides[:-1], hop * x.strides[-1], x.strides[-1])
    return xp.lib.stride_tricks.as_strided(x, shape=(*x.shape[:-1], count, length), strides=strides)


def sum_of_frames(frames: Array, hop: int, size: int, xp: ArrayModule) -> Array:
    """[..., size]: the sum of frames [..., F, length], each `hop` steps after the one before.

    Frames are cut into pieces of one hop, and the pieces of the same number lie side by side in the result.
    """
    *batch, count, length = frames.shape
    pieces = -(-length // hop)
    out = xp.zeros((*batch, max(count + pieces - 1, -(-size // hop)), hop), frames.dtype)
    for i in range(pieces):
        piece = frames[..., i * hop : (i + 1) * hop]
        out[..., i : i + count, : piece.shape[-1]] += piece
    return out.reshape(*batch, out.shape[-2] * hop)[..., :size].copy()


# transform ------------------------------------------------------------------------------------------------------------
# Fourier transforms over several axes, and their adjoints.
_OTHER = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def adjoint(normalization: str) -> str:
    """The normalization of the adjoint: it goes the other way, and is scaled by the same factor."""
    return _OTHER[normalization]


def c2c(x: Array, axes: Sequence[int], normalization: str, forward: bool, xp: ArrayModule) -> Array:
    """The transform of complex numbers."""
    dtype = xp.result_type(x.dtype, xp.complex64)
    if not axes:
        return x.astype(dtype)
    return (xp.fft.fftn if forward else xp.fft.ifftn)(x, axes=axes, norm=normalization).astype(dtype, copy=False)


def r2c(x: Array, axes: Sequence[int], normalization: str, forward: bool, xp: ArrayModule) -> Array:
    """The half of the last axis that says it all; the way back is that of the conjugate, and x is its own."""
    dtype = xp.result_type(x.dtype, xp.complex64)
    if forward:
        return xp.fft.rfftn(x, axes=axes, norm=normalization).astype(dtype, copy=False)
    return xp.fft.rfftn(x, axes=axes, norm=adjoint(normalization)).conj().astype(dtype, copy=False)


def c2r(x: Array, size: int, axes: Sequence[int], normalization: str, forward: bool, xp: ArrayModule) -> Array:
    """Real numbers from the half of the last axis; size: how many of them along it."""
    sizes = [x.shape[axis] for axis in axes[:-1]] + [size]
    if forward:
        x, normalization = x.conj(), adjoint(normalization)
    return xp.fft.irfftn(x, s=sizes, axes=axes, norm=normalization).astype(x.real.dtype, copy=False)


def r2c_adjoint(
    gradient: Array, size: int, axes: Sequence[int], normalization: str, forward: bool, xp: ArrayModule
) -> Array:
    """Gradient of x in r2c for that of its result; size: of the last axis of x. A whole axis may come as well."""
    axis = axes[-1]
    missing = size - gradient.shape[axis]
    if missing:
        widths = [(0, missing if i == axis % gradient.ndim else 0) for i in range(gradient.ndim)]
        gradient = xp.pad(gradient, widths)
    # a copy, so that the imaginary part is let go of
    return xp.ascontiguousarray(c2c(gradient, axes, adjoint(normalization), not forward, xp).real)


def c2r_adjoint(gradient: Array, axes: Sequence[int], normalization: str, forward: bool, xp: ArrayModule) -> Array:
    """Gradient of x in c2r for that of its result."""
    axis, size = axes[-1] % gradient.ndim, gradient.shape[axes[-1]]
    out = r2c(gradient, axes, adjoint(normalization), not forward, xp)
    twice = xp.full(size // 2 + 1, 2, gradient.dtype)
    twice[0] = 1
    if size % 2 == 0:
        twice[-1] = 1
    return out * twice.reshape(-1, *(1,) * (gradient.ndim - 1 - axis))


# fft_c2c --------------------------------------------------------------------------------------------------------------
@kernel("fft_c2c", place=("cpu", "cuda"), dtypes=COMPLEX)
def fft_c2c(X: Array, *, axes: list[int], normalization: str, forward: bool, xp: ArrayModule) -> Array:
    """The transform."""
    return c2c(X, axes, normalization, forward, xp)


@kernel("fft_c2c_grad", place=("cpu", "cuda"), dtypes=COMPLEX)
def fft_c2c_grad(Out_grad: Array, *, axes: list[int], normalization: str, forward: bool, xp: ArrayModule) -> Array:
    """The adjoint."""
    return c2c(Out_grad, axes, adjoint(normalization), not forward, xp)


# fft_c2r --------------------------------------------------------------------------------------------------------------
@kernel("fft_c2r", place=("cpu", "cuda"), dtypes=COMPLEX)
def fft_c2r(
    X: Array, *, axes: list[int], normalization: str, forward: bool, last_dim_size: int, xp: ArrayModule
) -> Array:
    """The transform."""
    size = last_dim_size or 2 * (X.shape[axes[-1]] - 1)
    return c2r(X, size, axes, normalization, forward, xp)


@kernel("fft_c2r_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def fft_c2r_grad(Out_grad: Array, *, axes: list[int], normalization: str, forward: bool, xp: ArrayModule) -> Array:
    """The adjoint."""
    return c2r_adjoint(Out_grad, axes, normalization, forward, xp)


# fft_r2c --------------------------------------------------------------------------------------------------------------
@kernel("fft_r2c", place=("cpu", "cuda"), dtypes=FLOATS)
def fft_r2c(X: Array, *, axes: list[int], normalization: str, forward: bool, onesided: bool, xp: ArrayModule) -> Array:
    """The transform, or its half."""
    return (r2c if onesided else c2c)(X, axes, normalization, forward, xp)


@kernel("fft_r2c_grad", place=("cpu", "cuda"), dtypes=COMPLEX)
def fft_r2c_grad(
    X: Array, Out_grad: Array, *, axes: list[int], normalization: str, forward: bool, xp: ArrayModule
) -> Array:
    """The real part of the adjoint."""
    return r2c_adjoint(Out_grad, X.shape[axes[-1]], axes, normalization, forward, xp)


# frame ----------------------------------------------------------------------------------------------------------------
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


# overlap_add ----------------------------------------------------------------------------------------------------------
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


# stft -----------------------------------------------------------------------------------------------------------------
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
