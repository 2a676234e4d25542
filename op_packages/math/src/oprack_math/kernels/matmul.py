"""Kernels of products of matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from oprack.errors import UnimplementedError
from oprack.kernel import Array, ArrayModule, KernelContext, kernel

from oprack_math.kernels._broadcast import align, sum_to
from oprack_math.kernels._numeric import accumulator, conjugate, rounded_once
from oprack_math.kernels._sets import BOTH, FLOATING, NUMBERS, REAL, REAL_FLOATS
from oprack_math.ops.matmul import FIRST_OF_THREE


# shared ---------------------------------------------------------------------------------------------------------------
# Matrix products of arrays as matmul_v2 defines them, their adjoints, and the adjoints of these.
def matrices(X: Array, Y: Array, trans_x: bool, trans_y: bool) -> tuple[Array, Array]:
    """Views with at least two dims, ready to be multiplied."""
    x = X.reshape(1, -1) if X.ndim == 1 else X.swapaxes(-1, -2) if trans_x else X
    y = Y.reshape(-1, 1) if Y.ndim == 1 else Y.swapaxes(-1, -2) if trans_y else Y
    return x, y


def matrix_product(x: Array, y: Array, xp: ArrayModule) -> Array:
    """xp.matmul in the dtype of x; 16-bit floats go through float32."""
    if x.dtype.name in ("float16", "bfloat16"):
        return xp.matmul(x.astype(xp.float32), y.astype(xp.float32)).astype(x.dtype)
    return xp.matmul(x, y)


def multiply(x: Array, y: Array, xp: ArrayModule) -> Array:
    """x @ y; a batch of matrices times one matrix is a single product."""
    if x.ndim > 2 and y.ndim == 2 and x.flags.c_contiguous:
        flat = x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
        return matrix_product(flat, y, xp).reshape(*x.shape[:-1], y.shape[-1])
    return matrix_product(x, y, xp)


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
    given = [t for t in terms if t is not None]
    if not given:
        return xp.zeros_like(like)
    return given[0] if len(given) == 1 else given[0] + given[1]


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


# addmm ----------------------------------------------------------------------------------------------------------------
@kernel("addmm", place=BOTH, dtypes=REAL_FLOATS)
@rounded_once
def addmm(Input: Array, X: Array, Y: Array, *, Beta: float, Alpha: float, xp: ArrayModule) -> Array:
    """Beta Input + Alpha X Y."""
    kind = X.dtype.type
    return kind(Beta) * Input + kind(Alpha) * xp.matmul(X, Y)


@kernel("addmm_grad", place=BOTH, dtypes=REAL_FLOATS)
@rounded_once
def addmm_grad(
    Input: Array, X: Array, Y: Array, Out_grad: Array, *, Beta: float, Alpha: float, ctx: KernelContext, xp: ArrayModule
) -> tuple[Array | None, Array | None, Array | None]:
    """Out@GRAD for each term, through its factors."""
    kind, dx, dy, given = X.dtype.type, None, None, None
    if ctx.wants("Input@GRAD"):
        given = kind(Beta) * sum_to(Out_grad, align(Input, Out_grad, -1)[0], Input)
    if ctx.wants("X@GRAD"):
        dx = kind(Alpha) * xp.matmul(Out_grad, Y.T)
    if ctx.wants("Y@GRAD"):
        dy = kind(Alpha) * xp.matmul(X.T, Out_grad)
    return given, dx, dy


# bmm ------------------------------------------------------------------------------------------------------------------
@kernel("bmm", place=BOTH, dtypes=NUMBERS)
def bmm(X: Array, Y: Array, *, xp: ArrayModule) -> Array:
    """Products of a batch of matrices."""
    return matrix_product(X, Y, xp)


@kernel("bmm_grad", place=BOTH, dtypes=FLOATING)
def bmm_grad(
    X: Array, Y: Array, Out_grad: Array, *, ctx: KernelContext, xp: ArrayModule
) -> tuple[Array | None, Array | None]:
    """Out@GRAD Y^T and X^T Out@GRAD."""
    dx = by_x(Out_grad, X, Y, False, False, xp) if ctx.wants("X@GRAD") else None
    return dx, by_y(Out_grad, X, Y, False, False, xp) if ctx.wants("Y@GRAD") else None


# cross ----------------------------------------------------------------------------------------------------------------
def _axis(x: Array, dim: int) -> int:
    return x.shape.index(3) if dim == FIRST_OF_THREE else dim


@kernel("cross", place=BOTH, dtypes=REAL)
def cross(X: Array, Y: Array, *, dim: int, xp: ArrayModule) -> Array:
    """X x Y."""
    return xp.cross(X, Y, axis=_axis(X, dim))


@kernel("cross_grad", place=BOTH, dtypes=REAL)
def cross_grad(
    X: Array, Y: Array, Out_grad: Array, *, dim: int, ctx: KernelContext, xp: ArrayModule
) -> tuple[Array | None, Array | None]:
    """The other factor and Out@GRAD, in the order that gives the sign."""
    axis = _axis(X, dim)
    dx = xp.cross(Y, Out_grad, axis=axis) if ctx.wants("X@GRAD") else None
    return dx, xp.cross(Out_grad, X, axis=axis) if ctx.wants("Y@GRAD") else None


# dot ------------------------------------------------------------------------------------------------------------------
@kernel("dot", place=BOTH, dtypes=NUMBERS)
def dot(X: Array, Y: Array, *, xp: ArrayModule) -> Array:
    """Sum of products along the last dim."""
    return (X * Y).sum(axis=-1, dtype=accumulator(X.dtype)).astype(X.dtype, copy=False)


@kernel("dot_grad", place=BOTH, dtypes=NUMBERS)
def dot_grad(
    X: Array, Y: Array, Out_grad: Array, *, ctx: KernelContext, xp: ArrayModule
) -> tuple[Array | None, Array | None]:
    """Out@GRAD times the other factor."""
    g = Out_grad.reshape(*X.shape[:-1], 1)
    dx = g * conjugate(Y, xp) if ctx.wants("X@GRAD") else None
    return dx, g * conjugate(X, xp) if ctx.wants("Y@GRAD") else None


# kron -----------------------------------------------------------------------------------------------------------------
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


# matmul ---------------------------------------------------------------------------------------------------------------
def _as_matrices(x: Array, y: Array, trans_x: bool, trans_y: bool) -> tuple[Array, Array, bool, bool]:
    """A transposed vector is a matrix; then nothing is left to transpose."""
    column, row = trans_x and x.ndim == 1, trans_y and y.ndim == 1
    return (
        x.reshape(-1, 1) if column else x,
        y.reshape(1, -1) if row else y,
        trans_x and not column,
        trans_y and not row,
    )


def _scaled(x: Array, alpha: float) -> Array:
    if x is None or alpha == 1:
        return x
    return x * x.dtype.type(alpha)


@kernel("matmul", place=BOTH, dtypes=REAL_FLOATS)
def matmul(
    X: Array, Y: Array, *, transpose_X: bool, transpose_Y: bool, alpha: float, head_number: int, xp: ArrayModule
) -> Array:
    """alpha X Y."""
    x, y, trans_x, trans_y = _as_matrices(X, Y, transpose_X, transpose_Y)
    if head_number == 1:
        return _scaled(product(x, y, trans_x, trans_y, xp), alpha)
    x, y = matrices(x, y, trans_x, trans_y)
    x = x.reshape(*x.shape[:-1], head_number, -1).swapaxes(-2, -3)
    y = y.reshape(*y.shape[:-2], head_number, -1, y.shape[-1])
    out = matrix_product(x, y, xp).swapaxes(-2, -3)
    return _scaled(out.reshape(*out.shape[:-2], -1), alpha)


def _one_head(head_number: int, op_type: str) -> None:
    if head_number != 1:
        raise UnimplementedError(
            f"op {op_type}: head_number is {head_number}; expected 1, since a product in heads has no gradient. "
            "Reshape and transpose the heads into batch dims instead"
        )


@kernel("matmul_grad", place=BOTH, dtypes=REAL_FLOATS)
def matmul_grad(
    X: Array,
    Y: Array,
    Out_grad: Array,
    *,
    transpose_X: bool,
    transpose_Y: bool,
    alpha: float,
    head_number: int,
    ctx: KernelContext,
    xp: ArrayModule,
) -> tuple[Array | None, Array | None]:
    """alpha Out@GRAD Y^T and alpha X^T Out@GRAD."""
    _one_head(head_number, "matmul_grad")
    x, y, trans_x, trans_y = _as_matrices(X, Y, transpose_X, transpose_Y)
    g = _scaled(Out_grad, alpha)
    dx = by_x(g, x, y, trans_x, trans_y, xp).reshape(X.shape) if ctx.wants("X@GRAD") else None
    return dx, by_y(g, x, y, trans_x, trans_y, xp).reshape(Y.shape) if ctx.wants("Y@GRAD") else None


@kernel("matmul_grad_grad", place=BOTH, dtypes=REAL_FLOATS)
def matmul_grad_grad(
    X: Array,
    Y: Array,
    DOut: Array,
    DDX: Array | None = None,
    DDY: Array | None = None,
    *,
    transpose_X: bool,
    transpose_Y: bool,
    alpha: float,
    head_number: int,
    ctx: KernelContext,
    xp: ArrayModule,
) -> tuple[Array | None, ...]:
    """By X, by Y and by Out@GRAD."""
    _one_head(head_number, "matmul_grad_grad")
    x, y, trans_x, trans_y = _as_matrices(X, Y, transpose_X, transpose_Y)
    e, f = (None if d is None else d.reshape(m.shape) for d, m in ((DDX, x), (DDY, y)))
    wants = [ctx.wants(s) for s in ("DX", "DY", "DDOut")]
    results = double_grad(x, y, DOut, e, f, trans_x, trans_y, wants, xp)
    return tuple(
        None if r is None else _scaled(r, alpha).reshape(a.shape) for r, a in zip(results, (X, Y, DOut), strict=True)
    )


# mul ------------------------------------------------------------------------------------------------------------------
def _flat(x: Array, columns: int) -> Array:
    return x.reshape(math.prod(x.shape[:columns]), math.prod(x.shape[columns:]))


@kernel("mul", place=BOTH, dtypes=REAL_FLOATS)
def mul(X: Array, Y: Array, *, x_num_col_dims: int, y_num_col_dims: int, xp: ArrayModule) -> Array:
    """The product of the flattened matrices."""
    out = matrix_product(_flat(X, x_num_col_dims), _flat(Y, y_num_col_dims), xp)
    return out.reshape(*X.shape[:x_num_col_dims], *Y.shape[y_num_col_dims:])


@kernel("mul_grad", place=BOTH, dtypes=REAL_FLOATS)
def mul_grad(
    X: Array,
    Y: Array,
    Out_grad: Array,
    *,
    x_num_col_dims: int,
    y_num_col_dims: int,
    ctx: KernelContext,
    xp: ArrayModule,
) -> tuple[Array | None, Array | None]:
    """Out@GRAD Y^T and X^T Out@GRAD."""
    x, y = _flat(X, x_num_col_dims), _flat(Y, y_num_col_dims)
    g = Out_grad.reshape(x.shape[0], y.shape[1])
    dx = matrix_product(g, y.T, xp).reshape(X.shape) if ctx.wants("X@GRAD") else None
    return dx, matrix_product(x.T, g, xp).reshape(Y.shape) if ctx.wants("Y@GRAD") else None


@kernel("mul_grad_grad", place=BOTH, dtypes=REAL_FLOATS)
def mul_grad_grad(
    X: Array,
    Y: Array,
    DOut: Array,
    DDX: Array | None = None,
    DDY: Array | None = None,
    *,
    x_num_col_dims: int,
    y_num_col_dims: int,
    ctx: KernelContext,
    xp: ArrayModule,
) -> tuple[Array | None, ...]:
    """By X, by Y and by Out@GRAD."""
    x, y = _flat(X, x_num_col_dims), _flat(Y, y_num_col_dims)
    e, f = (None if d is None else d.reshape(m.shape) for d, m in ((DDX, x), (DDY, y)))
    wants = [ctx.wants(s) for s in ("DX", "DY", "DDOut")]
    results = double_grad(x, y, DOut.reshape(x.shape[0], y.shape[1]), e, f, False, False, wants, xp)
    return tuple(None if r is None else r.reshape(a.shape) for r, a in zip(results, (X, Y, DOut), strict=True))


# multi_dot ------------------------------------------------------------------------------------------------------------
def _matrices(tensors: Sequence[Array]) -> list[Array]:
    """The first vector as a row, the last one as a column."""
    found = list(tensors)
    if found[0].ndim == 1:
        found[0] = found[0][None, :]
    if found[-1].ndim == 1:
        found[-1] = found[-1][:, None]
    return found


def _splits(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """(first, last) matrix of a product -> after which one it is best cut; sizes: rows of all, columns of the last."""
    count = len(sizes) - 1
    cost = {(i, i): 0 for i in range(count)}
    cuts = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            options = {k: cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1] for k in range(i, j)}
            cuts[i, j] = min(options, key=options.__getitem__)
            cost[i, j] = options[cuts[i, j]]
    return cuts


def _chain(matrices: Sequence[Array], xp: ArrayModule) -> Array:
    """The product of one matrix or more."""
    cuts = _splits([*(m.shape[0] for m in matrices), matrices[-1].shape[1]])

    def part(i: int, j: int) -> Array:
        return matrices[i] if i == j else matrix_product(part(i, cuts[i, j]), part(cuts[i, j] + 1, j), xp)

    return part(0, len(matrices) - 1)


@kernel("multi_dot", place=BOTH, dtypes=REAL_FLOATS)
def multi_dot(X: list[Array], *, xp: ArrayModule) -> Array:
    """The product of all."""
    shape = X[0].shape[: X[0].ndim - 1] + X[-1].shape[1:]
    return _chain(_matrices(X), xp).reshape(shape)


@kernel("multi_dot_grad", place=BOTH, dtypes=REAL_FLOATS)
def multi_dot_grad(X: list[Array], Out_grad: Array, *, ctx: KernelContext, xp: ArrayModule) -> dict[str, Any]:
    """Out@GRAD between the transposed products of what is before and behind each factor."""
    m = _matrices(X)
    g = Out_grad.reshape(m[0].shape[0], m[-1].shape[1])
    grads = []
    for i, x in enumerate(X):
        chain = [*(a.T for a in reversed(m[:i])), g, *(a.T for a in reversed(m[i + 1 :]))]
        grads.append(_chain(chain, xp).reshape(x.shape) if ctx.wants("X@GRAD", i) else None)
    return {"X@GRAD": grads}


# mv -------------------------------------------------------------------------------------------------------------------
@kernel("mv", place=BOTH, dtypes=REAL_FLOATS)
def mv(X: Array, Vec: Array, *, xp: ArrayModule) -> Array:
    """Matrix times vector."""
    return matrix_product(X, Vec, xp)


@kernel("mv_grad", place=BOTH, dtypes=REAL_FLOATS)
def mv_grad(
    X: Array, Vec: Array, Out_grad: Array, *, ctx: KernelContext, xp: ArrayModule
) -> tuple[Array | None, Array | None]:
    """The outer product, and the transposed matrix times Out@GRAD."""
    dx = Out_grad[:, None] * Vec if ctx.wants("X@GRAD") else None
    return dx, matrix_product(X.T, Out_grad, xp) if ctx.wants("Vec@GRAD") else None
