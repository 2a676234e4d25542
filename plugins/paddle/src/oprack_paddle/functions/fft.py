"""Fourier transforms of one and several dims, by the ops fft_c2c, fft_r2c and fft_c2r."""

from __future__ import annotations

from typing import Any

import numpy as np
import oprack
from oprack import functional as F

from oprack_paddle.functions._tools import dtype_name

Tensor = Any
_NORMS = ("backward", "ortho", "forward")


def _check(norm: str) -> None:
    if norm not in _NORMS:
        raise ValueError(f"norm is {norm!r}; expected one of {', '.join(map(repr, _NORMS))}")


def _complex(x: Tensor) -> Tensor:
    if str(x.dtype).startswith("complex"):
        return x
    x = _real(x)
    return F.complex(x, oprack.zeros_like(x))


def _real(x: Tensor) -> Tensor:
    return x if str(x.dtype).startswith(("float", "complex")) else x.astype("float32")


def _sized(x: Tensor, sizes: Any, axes: list[int]) -> Tensor:
    """x with these sizes along these dims: cut, or with zeros at the end."""
    for size, axis in zip(sizes or [None] * len(axes), axes, strict=True):
        have = x.shape[axis]
        if size is None or size in (-1, have):
            continue
        if size < have:
            x = x[(*[slice(None)] * axis, slice(0, size))]
        else:
            zeros = oprack.zeros([size - have if i == axis else n for i, n in enumerate(x.shape)], x.dtype)
            x = oprack.concat([x, zeros], axis=axis)
    return x


def _axes(x: Tensor, s: Any, axes: Any) -> list[int]:
    if axes is None:
        axes = range(x.ndim) if s is None else range(x.ndim - len(s), x.ndim)
    return [a % x.ndim for a in ([axes] if isinstance(axes, int) else axes)]


def _c2c(x: Tensor, s: Any, axes: Any, norm: str, forward: bool) -> Tensor:
    _check(norm)
    dims = _axes(x, s, axes)
    return F.fft_c2c(_sized(_complex(x), s, dims), axes=dims, normalization=norm, forward=forward)


def _r2c(x: Tensor, s: Any, axes: Any, norm: str, forward: bool) -> Tensor:
    _check(norm)
    dims = _axes(x, s, axes)
    x = _sized(_real(x), s, dims)
    return F.fft_r2c(x, axes=dims, normalization=norm, forward=forward, onesided=True)


def _c2r(x: Tensor, s: Any, axes: Any, norm: str, forward: bool) -> Tensor:
    _check(norm)
    dims = _axes(x, s, axes)
    x = _complex(x)
    last = 2 * (x.shape[dims[-1]] - 1) if s is None or s[-1] in (None, -1) else s[-1]
    wanted = [*(s[:-1] if s is not None else [None] * (len(dims) - 1)), last // 2 + 1]
    return F.fft_c2r(_sized(x, wanted, dims), axes=dims, normalization=norm, forward=forward, last_dim_size=last)


def _s(n: Any) -> Any:
    return None if n is None else [n]


def fft(x: Tensor, n: Any = None, axis: int = -1, norm: str = "backward", name: Any = None) -> Tensor:
    """The transform along one dim."""
    return _c2c(x, _s(n), axis, norm, True)


def ifft(x: Tensor, n: Any = None, axis: int = -1, norm: str = "backward", name: Any = None) -> Tensor:
    """The inverse transform along one dim."""
    return _c2c(x, _s(n), axis, norm, False)


def rfft(x: Tensor, n: Any = None, axis: int = -1, norm: str = "backward", name: Any = None) -> Tensor:
    """The transform of real numbers along one dim: the frequencies that are not negative."""
    return _r2c(x, _s(n), axis, norm, True)


def irfft(x: Tensor, n: Any = None, axis: int = -1, norm: str = "backward", name: Any = None) -> Tensor:
    """The inverse of rfft."""
    return _c2r(x, _s(n), axis, norm, False)


def hfft(x: Tensor, n: Any = None, axis: int = -1, norm: str = "backward", name: Any = None) -> Tensor:
    """The transform of a Hermitian signal, which is real."""
    return _c2r(x, _s(n), axis, norm, True)


def ihfft(x: Tensor, n: Any = None, axis: int = -1, norm: str = "backward", name: Any = None) -> Tensor:
    """The inverse of hfft."""
    return _r2c(x, _s(n), axis, norm, False)


def fftn(x: Tensor, s: Any = None, axes: Any = None, norm: str = "backward", name: Any = None) -> Tensor:
    """The transform along several dims."""
    return _c2c(x, s, axes, norm, True)


def ifftn(x: Tensor, s: Any = None, axes: Any = None, norm: str = "backward", name: Any = None) -> Tensor:
    """The inverse transform along several dims."""
    return _c2c(x, s, axes, norm, False)


def rfftn(x: Tensor, s: Any = None, axes: Any = None, norm: str = "backward", name: Any = None) -> Tensor:
    """The transform of real numbers along several dims."""
    return _r2c(x, s, axes, norm, True)


def irfftn(x: Tensor, s: Any = None, axes: Any = None, norm: str = "backward", name: Any = None) -> Tensor:
    """The inverse of rfftn."""
    return _c2r(x, s, axes, norm, False)


def hfftn(x: Tensor, s: Any = None, axes: Any = None, norm: str = "backward", name: Any = None) -> Tensor:
    """The transform of a Hermitian signal along several dims."""
    return _c2r(x, s, axes, norm, True)


def ihfftn(x: Tensor, s: Any = None, axes: Any = None, norm: str = "backward", name: Any = None) -> Tensor:
    """The inverse of hfftn."""
    return _r2c(x, s, axes, norm, False)


def fft2(x: Tensor, s: Any = None, axes: Any = (-2, -1), norm: str = "backward", name: Any = None) -> Tensor:
    """The transform along two dims."""
    return fftn(x, s, axes, norm)


def ifft2(x: Tensor, s: Any = None, axes: Any = (-2, -1), norm: str = "backward", name: Any = None) -> Tensor:
    """The inverse transform along two dims."""
    return ifftn(x, s, axes, norm)


def rfft2(x: Tensor, s: Any = None, axes: Any = (-2, -1), norm: str = "backward", name: Any = None) -> Tensor:
    """The transform of real numbers along two dims."""
    return rfftn(x, s, axes, norm)


def irfft2(x: Tensor, s: Any = None, axes: Any = (-2, -1), norm: str = "backward", name: Any = None) -> Tensor:
    """The inverse of rfft2."""
    return irfftn(x, s, axes, norm)


def hfft2(x: Tensor, s: Any = None, axes: Any = (-2, -1), norm: str = "backward", name: Any = None) -> Tensor:
    """The transform of a Hermitian signal along two dims."""
    return hfftn(x, s, axes, norm)


def ihfft2(x: Tensor, s: Any = None, axes: Any = (-2, -1), norm: str = "backward", name: Any = None) -> Tensor:
    """The inverse of hfft2."""
    return ihfftn(x, s, axes, norm)


def fftfreq(n: int, d: float = 1.0, dtype: Any = None, name: Any = None) -> Tensor:
    """The frequencies of fft."""
    return oprack.to_tensor(np.fft.fftfreq(n, d).astype(dtype_name(dtype) or "float32"))


def rfftfreq(n: int, d: float = 1.0, dtype: Any = None, name: Any = None) -> Tensor:
    """The frequencies of rfft."""
    return oprack.to_tensor(np.fft.rfftfreq(n, d).astype(dtype_name(dtype) or "float32"))


def fftshift(x: Tensor, axes: Any = None, name: Any = None) -> Tensor:
    """The frequency 0 in the middle."""
    dims = _axes(x, None, axes)
    return oprack.roll(x, [x.shape[a] // 2 for a in dims], dims)


def ifftshift(x: Tensor, axes: Any = None, name: Any = None) -> Tensor:
    """The inverse of fftshift."""
    dims = _axes(x, None, axes)
    return oprack.roll(x, [-(x.shape[a] // 2) for a in dims], dims)
