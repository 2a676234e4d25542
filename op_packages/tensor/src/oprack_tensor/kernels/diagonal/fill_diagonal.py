"""Kernels of fill_diagonal and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel


def _filled(x: Array, value: float, offset: int, wrap: bool, xp: ArrayModule) -> Array:
    out = x.copy()
    columns = x.shape[-1]
    step = sum(columns**i for i in range(x.ndim))
    end = x.size if wrap or x.ndim > 2 else min(x.size, columns * columns)
    places = xp.arange(0, end, step)
    column = places % max(columns, 1) + offset
    out.reshape(-1)[places[(column >= 0) & (column < columns)] + offset] = value
    return out


@kernel("fill_diagonal", place=("cpu", "cuda"))
def fill_diagonal(X: Array, *, value: float, offset: int, wrap: bool, xp: ArrayModule) -> Array:
    """X with the value on a diagonal."""
    return _filled(X, value, offset, wrap, xp)


@kernel("fill_diagonal_grad", place=("cpu", "cuda"))
def fill_diagonal_grad(Out_grad: Array, *, offset: int, wrap: bool, xp: ArrayModule) -> Array:
    """Out@GRAD with zeros there."""
    return _filled(Out_grad, 0, offset, wrap, xp)
