"""paddle.audio.functional: windows, and the scales of pitch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import oprack

from oprack_paddle.functions._tools import dtype_name

Tensor = Any


def _cosines(*weights: float) -> Any:
    """A window that is a sum of cosines."""

    def window(n: int) -> Any:
        angle = np.linspace(-np.pi, np.pi, n)
        return sum(w * np.cos(k * angle) for k, w in enumerate(weights))

    return window


def _places(n: int) -> Any:
    return np.arange(n) - (n - 1.0) / 2.0


def _taylor(n: int, nbar: int = 4, sll: float = 30, norm: bool = True) -> Any:
    a = math.acosh(10 ** (sll / 20)) / math.pi
    s2 = nbar**2 / (a**2 + (nbar - 0.5) ** 2)
    ma = np.arange(1, nbar)
    fm = np.empty(nbar - 1)
    signs = np.where(ma % 2 == 1, 1.0, -1.0)
    for i, m in enumerate(ma):
        top = signs[i] * np.prod(1 - m**2 / s2 / (a**2 + (ma - 0.5) ** 2))
        fm[i] = top / (2 * np.prod(1 - m**2 / ma[:i] ** 2) * np.prod(1 - m**2 / ma[i + 1 :] ** 2))
    at = lambda k: 1 + 2 * np.dot(fm, np.cos(2 * np.pi * ma[:, None] * (k - n / 2.0 + 0.5) / n))  # noqa: E731
    w = at(np.arange(n))
    return w / at((n - 1) / 2) if norm else w


def _bohman(n: int) -> Any:
    edge = np.abs(np.linspace(-1, 1, n)[1:-1])
    return np.concatenate([[0], (1 - edge) * np.cos(np.pi * edge) + np.sin(np.pi * edge) / np.pi, [0]])


def _tukey(n: int, alpha: float = 0.5) -> Any:
    if alpha <= 0:
        return np.ones(n)
    if alpha >= 1:
        return _cosines(0.5, 0.5)(n)
    k, width = np.arange(n), int(alpha * (n - 1) / 2)
    a, b, c = k[: width + 1], k[width + 1 : n - width - 1], k[n - width - 1 :]
    rise = 0.5 * (1 + np.cos(np.pi * (-1 + 2.0 * a / alpha / (n - 1))))
    fall = 0.5 * (1 + np.cos(np.pi * (-2.0 / alpha + 1 + 2.0 * c / alpha / (n - 1))))
    return np.concatenate([rise, np.ones(len(b)), fall])


def _triang(n: int) -> Any:
    k = np.arange(1, (n + 1) // 2 + 1)
    half = (2 * k - 1.0) / n if n % 2 == 0 else 2 * k / (n + 1.0)
    return np.concatenate([half, half[::-1] if n % 2 == 0 else half[-2::-1]])


def _exponential(n: int, center: Any = None, tau: float = 1.0) -> Any:
    return np.exp(-np.abs(np.arange(n) - ((n - 1) / 2 if center is None else center)) / tau)


_WINDOWS = {
    "hamming": _cosines(0.54, 0.46),
    "hann": _cosines(0.5, 0.5),
    "blackman": _cosines(0.42, 0.5, 0.08),
    "nuttall": _cosines(0.3635819, 0.4891775, 0.1365995, 0.0106411),
    "cosine": lambda n: np.sin(np.pi / n * (np.arange(n) + 0.5)),
    "gaussian": lambda n, std: np.exp(-(_places(n) ** 2) / (2 * std * std)),
    "general_gaussian": lambda n, p, sig: np.exp(-0.5 * np.abs(_places(n) / sig) ** (2 * p)),
    "exponential": _exponential,
    "taylor": _taylor,
    "triang": _triang,
    "bohman": _bohman,
    "tukey": _tukey,
    "kaiser": lambda n, beta: np.kaiser(n, beta),
}


def get_window(window: Any, win_length: int, fftbins: bool = True, dtype: Any = "float64") -> Tensor:
    """A window by its name, or by its name and numbers; for spectra one element longer and cut."""
    name, *numbers = [window] if isinstance(window, str) else window
    if name not in _WINDOWS:
        raise ValueError(f"get_window: window is {window!r}; expected one of {', '.join(_WINDOWS)}")
    if win_length < 0:
        raise ValueError(f"get_window: win_length is {win_length}; expected a number of elements")
    if win_length <= 1:
        return oprack.to_tensor(np.ones(win_length, dtype_name(dtype)))
    found = _WINDOWS[name](win_length + bool(fftbins), *numbers)[:win_length]
    return oprack.to_tensor(np.asarray(found).astype(dtype_name(dtype)))


def _converted(value: Any, function: Any) -> Any:
    """A tensor as a tensor, a number as a number."""
    if hasattr(value, "dtype"):
        return oprack.to_tensor(function(np.asarray(value, "float64")).astype(value.dtype))
    return float(function(np.asarray(value, "float64")))


_STEP, _KNEE = 200.0 / 3, 1000.0
_MELS, _LOG = _KNEE / _STEP, math.log(6.4) / 27.0


def hz_to_mel(freq: Any, htk: bool = False) -> Any:
    """Frequencies on the mel scale."""
    if htk:
        return _converted(freq, lambda f: 2595.0 * np.log10(1.0 + f / 700.0))
    return _converted(
        freq, lambda f: np.where(f >= _KNEE, _MELS + np.log(np.maximum(f, 1e-10) / _KNEE) / _LOG, f / _STEP)
    )


def mel_to_hz(mel: Any, htk: bool = False) -> Any:
    """The frequencies of mels."""
    if htk:
        return _converted(mel, lambda m: 700.0 * (10.0 ** (m / 2595.0) - 1.0))
    return _converted(mel, lambda m: np.where(m >= _MELS, _KNEE * np.exp(_LOG * (m - _MELS)), _STEP * m))


def mel_frequencies(
    n_mels: int = 64, f_min: float = 0.0, f_max: float = 11025.0, htk: bool = False, dtype: Any = "float32"
) -> Tensor:
    """Frequencies at equal distances on the mel scale."""
    mels = np.linspace(hz_to_mel(f_min, htk), hz_to_mel(f_max, htk), n_mels)
    return mel_to_hz(oprack.to_tensor(mels), htk).astype(dtype_name(dtype))


def fft_frequencies(sr: int, n_fft: int, dtype: Any = "float32") -> Tensor:
    """The frequencies of a spectrum."""
    return oprack.to_tensor(np.linspace(0, sr / 2, 1 + n_fft // 2).astype(dtype_name(dtype)))


def compute_fbank_matrix(
    sr: int, n_fft: int, n_mels: int = 64, f_min: float = 0.0, f_max: Any = None, htk: bool = False,
    norm: Any = "slaney",
    dtype: Any = "float32",
) -> Tensor:  # fmt: skip
    """The weights with which frequencies count in bands of the mel scale."""
    f_max = sr / 2 if f_max is None else f_max
    bins = np.linspace(0, sr / 2, 1 + n_fft // 2)
    edges = np.asarray(mel_frequencies(n_mels + 2, f_min, f_max, htk, "float64"))
    ramps, width = edges[:, None] - bins[None], np.diff(edges)
    weights = np.maximum(0, np.minimum(-ramps[:-2] / width[:-1, None], ramps[2:] / width[1:, None]))
    if norm == "slaney":
        weights *= (2.0 / (edges[2:] - edges[:-2]))[:, None]
    elif isinstance(norm, int | float):
        weights /= np.maximum((np.abs(weights) ** norm).sum(-1, keepdims=True) ** (1.0 / norm), 1e-12)
    return oprack.to_tensor(weights.astype(dtype_name(dtype)))


def power_to_db(spect: Tensor, ref_value: float = 1.0, amin: float = 1e-10, top_db: Any = 80.0) -> Tensor:
    """Powers in decibels."""
    if amin <= 0 or ref_value <= 0:
        raise ValueError(f"power_to_db: amin is {amin} and ref_value is {ref_value}; expected positive numbers")
    log = oprack.log10(oprack.clip(spect, amin)) * 10.0 - 10.0 * math.log10(max(ref_value, amin))
    return log if top_db is None else oprack.maximum(log, (oprack.max(log) - float(top_db)).broadcast_to(log.shape))


def create_dct(n_mfcc: int, n_mels: int, norm: Any = "ortho", dtype: Any = "float32") -> Tensor:
    """The matrix of a discrete cosine transform."""
    n, k = np.arange(n_mels), np.arange(n_mfcc)[:, None]
    dct = np.cos(math.pi / n_mels * (n + 0.5) * k)
    if norm is None:
        dct *= 2.0
    else:
        dct[0] *= 1.0 / math.sqrt(2.0)
        dct *= math.sqrt(2.0 / n_mels)
    return oprack.to_tensor(dct.T.astype(dtype_name(dtype)))
