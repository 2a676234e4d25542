"""Fourier transforms over several axes, and their adjoints."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.kernel import Array, ArrayModule

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
