"""Matrix products of arrays as matmul_v2 defines them, their adjoints, and the adjoints of these."""

from __future__ import annotations

import math
from collections.abc import Sequence

from oprack.kernel import Array, ArrayModule

from oprack_math.kernels._numeric import conjugate


def matrices(X: Array, Y: Array, trans_x: bool, trans_y: bool) -> tuple[Array, Array]:
    """Views with at least two dims, ready to be multiplied."""
    x = X.reshape(1, -1) if X.ndim == 1 else X.swapaxes(-1, -2) if trans_x else X
    y = Y.reshape(-1, 1) if Y.ndim == 1 else Y.swapaxes(-1, -2) if trans_y else Y
    return x, y


def matmul(x: Array, y: Array, xp: ArrayModule) -> Array:
    """xp.matmul in the dtype of x; 16-bit floats go through float32."""
    if x.dtype.name in ("float16", "bfloat16"):
        return xp.matmul(x.astype(xp.float32), y.astype(xp.float32)).astype(x.dtype)
    return xp.matmul(x, y)


def multiply(x: Array, y: Array, xp: ArrayModule) -> Array:
    """x @ y; a batch of matrices times one matrix is a single product."""
    if x.ndim > 2 and y.ndim == 2 and x.flags.c_contiguous:
        flat = x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
        return matmul(flat, y, xp).reshape(*x.shape[:-1], y.shape[-1])
    return matmul(x, y, xp)


def product(X: Array, Y: Array, trans_x: bool, trans_y: bool, xp: ArrayModule) -> Array:
    """X Y, without the dims that 1-D factors do not have."""
    x, y = matrices(X, Y, trans_x, trans_y)
    out = multiply(x, y, xp)
    rows, columns = out.shape[-2:]
    return out.reshape((*out.shape[:-2], *(() if X.ndim == 1 else (rows,)), *(() if Y.ndim == 1 else (columns,))))


def _sum_batch(gradient: Array, like: Array) -> Array:
    """Sum over batch dims that `like` has not or has as 1."""
    extra = gradient.ndim - like.ndim
    if extra:
        gradient = gradient.sum(axis=tuple(range(extra)), dtype=gradient.dtype)
    axes = tuple(i for i, n in enumerate(like.shape[:-2]) if n == 1 and gradient.shape[i] != 1)
    return gradient.sum(axis=axes, keepdims=True, dtype=gradient.dtype) if axes else gradient


def _shaped(gradient: Array, x: Array, X: Array, transposed: bool) -> Array:
    """Gradient of the matrix view `x` as the gradient of X."""
    gradient = _sum_batch(gradient, x)
    if X.ndim > 1 and transposed:
        gradient = gradient.swapaxes(-1, -2)
    return gradient.reshape(X.shape)


def by_x(G: Array, X: Array, Y: Array, trans_x: bool, trans_y: bool, xp: ArrayModule) -> Array:
    """Gradient of X for the gradient G of the product. Of X only the shape is read."""
    x, y = matrices(X, Y, trans_x, trans_y)
    g = _as_matrix(G, X, Y)
    y = conjugate(y, xp)
    if trans_x and X.ndim == 2 and g.ndim == 2:
        return multiply(y, g.swapaxes(-1, -2), xp)
    return _shaped(multiply(g, y.swapaxes(-1, -2), xp), x, X, trans_x)


def by_y(G: Array, X: Array, Y: Array, trans_x: bool, trans_y: bool, xp: ArrayModule) -> Array:
    """Gradient of Y for the gradient G of the product. Of Y only the shape is read."""
    x, y = matrices(X, Y, trans_x, trans_y)
    g = _as_matrix(G, X, Y)
    x = conjugate(x, xp)
    if y.ndim == 2 and x.shape[:-2] == g.shape[:-2] and g.size and x.size:
        # one matrix Y for the whole batch: rows of all batches in one product instead of a sum of products
        x, g = x.reshape(-1, x.shape[-1]), g.reshape(-1, g.shape[-1])
    if trans_y and Y.ndim == 2 and g.ndim == 2:
        return multiply(g.swapaxes(-1, -2), x, xp)
    return _shaped(multiply(x.swapaxes(-1, -2), g, xp), y, Y, trans_y)


def _as_matrix(G: Array, X: Array, Y: Array) -> Array:
    batch = G.shape[: G.ndim - (X.ndim > 1) - (Y.ndim > 1)]
    rows = G.shape[G.ndim - 1 - (Y.ndim > 1) : G.ndim - (Y.ndim > 1)] if X.ndim > 1 else (1,)
    columns = G.shape[-1:] if Y.ndim > 1 else (1,)
    return G.reshape(*batch, *rows, *columns)


def total(terms: Sequence[Array | None], like: Array, xp: ArrayModule) -> Array:
    """Sum of the terms that are there; zeros when none is."""
    terms = [t for t in terms if t is not None]
    if not terms:
        return xp.zeros_like(like)
    return terms[0] if len(terms) == 1 else terms[0] + terms[1]


def double_grad(
    X: Array,
    Y: Array,
    d: Array,
    e: Array | None,
    f: Array | None,
    trans_x: bool,
    trans_y: bool,
    wants: Sequence[bool],
    xp: ArrayModule,
) -> tuple[Array | None, Array | None, Array | None]:
    """(by X, by Y, by Out@GRAD) of a product's gradients, for their gradients e and f; wants: which of the three."""
    flags = trans_x, trans_y, xp
    dx = dy = dd = None
    if wants[0]:
        dx = xp.zeros_like(X) if f is None else by_x(d, X, f, *flags)
    if wants[1]:
        dy = xp.zeros_like(Y) if e is None else by_y(d, e, Y, *flags)
    if wants[2]:
        terms = (None if e is None else product(e, Y, *flags), None if f is None else product(X, f, *flags))
        dd = total(terms, d, xp)
    return dx, dy, dd
