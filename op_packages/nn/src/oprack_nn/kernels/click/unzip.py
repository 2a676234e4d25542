"""Kernels of unzip and of its gradient."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import ShapeOnly


def _taken(lod: Array, rows: int, xp: ArrayModule) -> Array:
    """The instances that have a row."""
    taken = xp.flatnonzero(lod[1:] > lod[:-1])
    if len(taken) > rows:
        raise InvalidArgumentError(
            f"op unzip: lod rises {len(taken)} times and X has {rows} rows; expected as many rows or more"
        )
    return taken


@kernel("unzip", place=("cpu", "cuda"))
def unzip(X: Array, lod: Array, *, xp: ArrayModule) -> Array:
    """One scatter of rows."""
    taken = _taken(lod, len(X), xp)
    out = xp.zeros((max(len(lod) - 1, 0), X.shape[1]), X.dtype)
    out[taken] = X[: len(taken)]
    return out


@kernel("unzip_grad", place=("cpu", "cuda"))
def unzip_grad(X: ShapeOnly, lod: Array, Y_grad: Array, *, xp: ArrayModule) -> Array:
    """One gather of rows."""
    taken = _taken(lod, X.shape[0], xp)
    grad = xp.zeros(X.shape, Y_grad.dtype)
    grad[: len(taken)] = Y_grad[taken]
    return grad
