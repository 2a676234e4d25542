"""Kernels of power_spectrogram and its gradient, on scipy.fft, which computes float32 in float32."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, kernel
from oprack.types import FLOATS
from scipy import fft


@kernel("power_spectrogram", dtypes=FLOATS)
def power_spectrogram(X: Array, Window: Array, *, hop: int) -> Array:
    spectra = fft.rfft(_frames(X, len(Window), hop) * Window)
    power = spectra.real * spectra.real + spectra.imag * spectra.imag
    return np.ascontiguousarray(np.moveaxis(power, -1, -2))


@kernel("power_spectrogram_grad", dtypes=FLOATS)
def power_spectrogram_grad(X: Array, Window: Array, Out_grad: Array, *, hop: int) -> tuple[Array, Array]:
    length = len(Window)
    frames = _frames(X, length, hop)
    scaled = fft.rfft(frames * Window) * np.moveaxis(Out_grad, -2, -1)
    # irfft counts each frequency between the first and the last for its mirror image, too; this sum has it once.
    scaled[..., 1 : (length + 1) // 2] /= 2
    of_frames = fft.irfft(scaled, length) * X.dtype.type(2 * length)
    of_window = (of_frames * frames).reshape(-1, length).sum(axis=0)
    return _overlap_add(of_frames * Window, hop, X.shape), of_window


def _frames(signal: Array, length: int, hop: int) -> Array:
    """[..., frames, length], a view of the signal."""
    return np.lib.stride_tricks.sliding_window_view(signal, length, axis=-1)[..., ::hop, :]


def _overlap_add(frames: Array, hop: int, shape: tuple[int, ...]) -> Array:
    """The sum of frames at their places: in as many steps as frames overlap, whatever their number."""
    count, length = frames.shape[-2:]
    parts = -(-length // hop)
    padded = np.zeros((*shape[:-1], max(count + parts - 1, -(-shape[-1] // hop)), hop), frames.dtype)
    for part in range(parts):
        piece = frames[..., part * hop : (part + 1) * hop]
        padded[..., part : part + count, : piece.shape[-1]] += piece
    return padded.reshape(*shape[:-1], -1)[..., : shape[-1]]
