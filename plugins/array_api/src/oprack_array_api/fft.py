"""The extension fft of the standard: by the ops fft_c2c, fft_r2c and fft_c2r."""

from __future__ import annotations

from typing import Any

from oprack import Tensor
from oprack import functional as F
from oprack.errors import InvalidArgumentError
from oprack.types import complex_dtype

from oprack_array_api._operands import axes_of, cast, named, place_of, require_tensor
from oprack_array_api.creation import arange, asarray, zeros
from oprack_array_api.dtypes import category
from oprack_array_api.manipulation import concat, roll

__all__ = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn", "rfft",
    "rfftfreq", "rfftn",
]  # fmt: skip
_OPPOSITE = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def _normalization(norm: str) -> str:
    if norm not in _OPPOSITE:
        raise InvalidArgumentError(f"fft: norm is {norm!r}; expected 'backward', 'ortho' or 'forward'")
    return norm


def _sized(x: Any, sizes: dict[int, int]) -> Any:
    """x cut, or filled up with zeros, to sizes of dims."""
    for axis, n in sizes.items():
        if n < x.shape[axis]:
            x = x[(*(slice(None),) * axis, slice(0, n))]
        elif n > x.shape[axis]:
            shape = (*x.shape[:axis], n - x.shape[axis], *x.shape[axis + 1 :])
            x = concat([x, zeros(shape, dtype=x.dtype, device=place_of(x))], axis=axis)
    return x


def _dims(x: Any, s: Any, axes: Any, name: str) -> tuple[list[int], list[int]]:
    """Dims and their sizes."""
    if axes is None:
        axes = range(x.ndim) if s is None else range(x.ndim - len(s), x.ndim)
    places = list(axes_of(tuple(axes), require_tensor(x, name).ndim, name))
    sizes = (
        [x.shape[a] for a in places]
        if s is None
        else [x.shape[a] if n == -1 else int(n) for n, a in zip(s, places, strict=True)]
    )
    return places, sizes


def _complex(x: Any, s: Any, axes: Any, norm: str, forward: bool, name: str) -> Tensor:
    places, sizes = _dims(x, s, axes, name)
    x = _sized(cast(x, complex_dtype(x.dtype)), dict(zip(places, sizes, strict=True)))
    return F.fft_c2c(x, axes=places, normalization=_normalization(norm), forward=forward)


def _from_real(x: Any, s: Any, axes: Any, norm: str, forward: bool, name: str) -> Tensor:
    places, sizes = _dims(x, s, axes, name)
    if category(x.dtype) != "real floating":
        raise InvalidArgumentError(f"{name}: {named(x)}; expected real numbers")
    x = _sized(x, dict(zip(places, sizes, strict=True)))
    attrs = {"normalization": _normalization(norm), "forward": forward, "onesided": True}
    return F.fft_r2c(x, axes=places, **attrs)


def _to_real(x: Any, s: Any, axes: Any, norm: str, forward: bool, name: str) -> Tensor:
    places, sizes = _dims(x, s, axes, name)
    if s is None:
        sizes[-1] = 2 * (sizes[-1] - 1)
    half = [*sizes[:-1], sizes[-1] // 2 + 1]
    x = _sized(cast(x, complex_dtype(x.dtype)), dict(zip(places, half, strict=True)))
    attrs = {"normalization": _normalization(norm), "forward": forward, "last_dim_size": sizes[-1]}
    return F.fft_c2r(x, axes=places, **attrs)


def fft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The discrete Fourier transform along a dim, of n elements: fewer, or filled up with zeros."""
    return _complex(x, None if n is None else (n,), (axis,), norm, True, "fft")


def ifft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The inverse of fft."""
    return _complex(x, None if n is None else (n,), (axis,), norm, False, "ifft")


def fftn(x: Any, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Tensor:
    """fft along several dims."""
    return _complex(x, s, axes, norm, True, "fftn")


def ifftn(x: Any, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Tensor:
    """The inverse of fftn."""
    return _complex(x, s, axes, norm, False, "ifftn")


def rfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """fft of real numbers: the frequencies from 0, since the others are their conjugates."""
    return _from_real(x, None if n is None else (n,), (axis,), norm, True, "rfft")


def irfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The inverse of rfft, n real numbers."""
    return _to_real(x, None if n is None else (n,), (axis,), norm, False, "irfft")


def rfftn(x: Any, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Tensor:
    """rfft along the last of several dims, fft along the others."""
    return _from_real(x, s, axes, norm, True, "rfftn")


def irfftn(x: Any, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Tensor:
    """The inverse of rfftn."""
    return _to_real(x, s, axes, norm, False, "irfftn")


def hfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """fft of numbers of which only the first half is given, since the others are conjugates: n real numbers."""
    return _to_real(x, None if n is None else (n,), (axis,), norm, True, "hfft")


def ihfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The inverse of hfft."""
    return _from_real(x, None if n is None else (n,), (axis,), norm, False, "ihfft")


def _frequencies(places: Tensor, n: int, d: float, dtype: Any) -> Tensor:
    return places.astype(dtype or "float32") / (n * d)


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of fft with n elements at a distance d."""
    half = (n - 1) // 2 + 1
    return _frequencies(asarray([*range(half), *range(-(n // 2), 0)], device=device), n, d, dtype)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of rfft with n elements at a distance d."""
    return _frequencies(arange(n // 2 + 1, device=device), n, d, dtype)


def fftshift(x: Any, /, *, axes: Any = None) -> Tensor:
    """Frequency 0 moved to the middle."""
    places = axes_of(axes, x.ndim, "fftshift")
    return roll(x, tuple(x.shape[a] // 2 for a in places), axis=places)


def ifftshift(x: Any, /, *, axes: Any = None) -> Tensor:
    """The inverse of fftshift."""
    places = axes_of(axes, x.ndim, "ifftshift")
    return roll(x, tuple(-(x.shape[a] // 2) for a in places), axis=places)
