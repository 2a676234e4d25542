"""paddle.signal: short-time Fourier transforms."""

from __future__ import annotations

from typing import Any

import numpy as np
import oprack
from oprack import functional as F

from oprack_paddle.functions import fft as transforms

Tensor = Any


def _window(window: Any, win_length: int, n_fft: int, dtype: str) -> Tensor:
    found = oprack.ones([win_length], dtype=dtype) if window is None else window
    if win_length == n_fft:
        return found
    before = (n_fft - win_length) // 2
    return oprack.concat([oprack.zeros([before], dtype), found, oprack.zeros([n_fft - win_length - before], dtype)])


def stft(
    x: Tensor, n_fft: int, hop_length: Any = None, win_length: Any = None, window: Any = None, center: bool = True,
    pad_mode: str = "reflect", normalized: bool = False, onesided: bool = True, name: Any = None,
) -> Tensor:  # fmt: skip
    """The spectra of windows that move over a signal: frequencies, then windows."""
    hop, length = hop_length or n_fft // 4, win_length or n_fft
    flat = x.reshape([-1, x.shape[-1]])
    if center:
        pad = n_fft // 2
        flat = F.pad3d(
            flat.reshape([flat.shape[0], 1, 1, 1, -1]), paddings=[pad, pad, 0, 0, 0, 0], mode=pad_mode
        ).reshape([flat.shape[0], -1])
    starts = np.arange(0, flat.shape[-1] - n_fft + 1, hop)
    places = oprack.to_tensor((starts[:, None] + np.arange(n_fft)).ravel())
    frames = F.index_select(flat, places, dim=1).reshape([flat.shape[0], len(starts), n_fft])
    frames = frames * _window(window, length, n_fft, str(np.empty(0, x.dtype).real.dtype))
    norm = "ortho" if normalized else "backward"
    real = onesided and not str(x.dtype).startswith("complex")
    found = (transforms.rfft if real else transforms.fft)(frames, axis=-1, norm=norm).transpose([0, 2, 1])
    return found.squeeze(0) if x.ndim == 1 else found


def istft(
    x: Tensor, n_fft: int, hop_length: Any = None, win_length: Any = None, window: Any = None, center: bool = True,
    normalized: bool = False, onesided: bool = True, length: Any = None, return_complex: bool = False, name: Any = None,
) -> Tensor:  # fmt: skip
    """The signal of such spectra."""
    hop, wide = hop_length or n_fft // 4, win_length or n_fft
    spectra = x.unsqueeze(0) if x.ndim == 2 else x
    norm = "ortho" if normalized else "backward"
    frames = spectra.transpose([0, 2, 1])
    if return_complex:
        frames = transforms.ifft(frames, axis=-1, norm=norm)
    else:
        frames = transforms.irfft(frames if onesided else frames[..., : n_fft // 2 + 1], n=n_fft, axis=-1, norm=norm)
    shape = _window(window, wide, n_fft, "float64" if x.dtype == "complex128" else "float32")
    frames = frames * shape
    count = frames.shape[1]
    total = n_fft + hop * (count - 1)
    places = oprack.to_tensor((np.arange(count)[:, None] * hop + np.arange(n_fft)).reshape(-1, 1))
    signal = oprack.stack(
        [
            F.scatter_nd_add(oprack.zeros([total], frames.dtype), places, frames[i].reshape([-1]))
            for i in range(frames.shape[0])
        ]
    )
    squares = F.scatter_nd_add(oprack.zeros([total], shape.dtype), places, F.tile(shape * shape, repeat_times=[count]))
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else total - start
    signal, squares = signal[:, start:end], squares[start:end]
    if float(squares.abs().min()) < 1e-11:
        raise ValueError("istft: the windows leave elements out; expected ones that overlap")
    found = signal / squares
    return found.squeeze(0) if x.ndim == 2 else found
