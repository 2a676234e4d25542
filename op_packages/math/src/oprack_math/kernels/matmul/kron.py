"""Kernels of kron and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel

from oprack_math.kernels._numeric import conjugate, rounded_once
from oprack_math.kernels._sets import BOTH, NUMBERS


def _apart(x: Array, y: Array) -> tuple[Array, Array]:
    """Views of 2n dims, x in the even ones and y in the odd ones, so that their product is Out in pairs of dims."""
    rank = max(x.ndim, y.ndim)
    dims_x, dims_y = (1,) * (rank - x.ndim) + x.shape, (1,) * (rank - y.ndim) + y.shape
    even = x.reshape([n for d in dims_x for n in (d, 1)])
    return even, y.reshape([n for d in dims_y for n in (1, d)])


@kernel("kron", place=BOTH, dtypes=NUMBERS)
def kron(X: Array, Y: Array) -> Array:
    """Every element of X times all of Y."""
    x, y = _apart(X, Y)
    return (x * y).reshape([a * b for a, b in zip(x.shape[::2], y.shape[1::2], strict=True)])


@kernel("kron_grad", place=BOTH, dtypes=NUMBERS)
@rounded_once
def kron_grad(
    X: Array, Y: Array, Out_grad: Array, *, ctx: KernelContext, xp: ArrayModule
) -> tuple[Array | None, Array | None]:
    """Out@GRAD times the other factor, summed over that factor's dims."""
    x, y = _apart(X, Y)
    g = Out_grad.reshape([n for pair in zip(x.shape[::2], y.shape[1::2], strict=True) for n in pair])
    even, odd = tuple(range(0, g.ndim, 2)), tuple(range(1, g.ndim, 2))
    dx = dy = None
    if ctx.wants("X@GRAD"):
        dx = (g * conjugate(y, xp)).sum(axis=odd, dtype=X.dtype).reshape(X.shape)
    if ctx.wants("Y@GRAD"):
        dy = (g * conjugate(x, xp)).sum(axis=even, dtype=Y.dtype).reshape(Y.shape)
    return dx, dy
