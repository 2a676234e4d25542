"""The extension linalg of the standard."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from oprack import Tensor
from oprack import functional as F
from oprack.errors import InvalidArgumentError

from oprack_array_api import reductions as _over
from oprack_array_api._operands import cast, constant, named, place_of, require_tensor, together
from oprack_array_api.creation import eye, zeros
from oprack_array_api.dtypes import category
from oprack_array_api.elementwise import where as _where
from oprack_array_api.manipulation import broadcast_to, moveaxis, reshape
from oprack_array_api.products import matmul, matrix_transpose, tensordot, vecdot

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power",
    "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot",
    "trace", "vecdot", "vector_norm",
]  # fmt: skip


class Eigh(NamedTuple):
    """What eigh returns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QR(NamedTuple):
    """What qr returns."""

    Q: Tensor
    R: Tensor


class SlogDet(NamedTuple):
    """What slogdet returns."""

    sign: Tensor
    logabsdet: Tensor


class SVD(NamedTuple):
    """What svd returns."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def _adjoint(x: Any) -> Any:
    """Transposed and conjugated."""
    turned = matrix_transpose(x)
    return F.conj(turned) if category(x.dtype) == "complex floating" else turned


def _matrices(x: Any, name: str, square: bool = True) -> Any:
    require_tensor(x, name)
    if x.ndim < 2 or (square and x.shape[-1] != x.shape[-2]):
        raise InvalidArgumentError(f"{name}: {named(x)}; expected {'square ' if square else ''}matrices")
    return x


def cholesky(x: Any, /, *, upper: bool = False) -> Tensor:
    """The triangle L with L L^H = x, or its adjoint."""
    return F.cholesky(_matrices(x, "cholesky"), upper=upper)


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Tensor:
    """The cross product of vectors of 3 elements along a dim; the other dims broadcast."""
    x, y = together(x1, x2, "cross")
    if x.shape[axis] != 3 or y.shape[axis] != 3:
        raise InvalidArgumentError(f"cross: {named(x)} and {named(y)}; expected 3 elements along axis {axis}")
    a = [moveaxis(x, axis, 0)[i] for i in range(3)]
    b = [moveaxis(y, axis, 0)[i] for i in range(3)]
    parts = [
        F.elementwise_sub(F.elementwise_mul(a[i], b[j]), F.elementwise_mul(a[j], b[i]))
        for i, j in ((1, 2), (2, 0), (0, 1))
    ]
    return moveaxis(F.stack(parts, axis=0), 0, axis)


def det(x: Any, /) -> Tensor:
    """The determinants of matrices."""
    return reshape(F.determinant(_matrices(x, "det")), x.shape[:-2])


def slogdet(x: Any, /) -> SlogDet:
    """The signs of determinants, and the logarithms of their absolute values."""
    found = F.slogdeterminant(_matrices(x, "slogdet"))
    sign, size = (reshape(found[i], x.shape[:-2]) for i in range(2))
    if category(x.dtype) == "complex floating":
        size = F.real(size)
    return SlogDet(sign, size)


def diagonal(x: Any, /, *, offset: int = 0) -> Tensor:
    """The elements of a diagonal of matrices."""
    return F.diagonal(_matrices(x, "diagonal", False), offset=offset, axis1=x.ndim - 2, axis2=x.ndim - 1)


def eigh(x: Any, /) -> Eigh:
    """Eigenvalues and eigenvectors of symmetric or Hermitian matrices."""
    found = F.eigh(_matrices(x, "eigh"))
    return Eigh(found[0], found[1])


def eigvalsh(x: Any, /) -> Tensor:
    """Eigenvalues of symmetric or Hermitian matrices."""
    return F.eigh(_matrices(x, "eigvalsh"))[0]


def inv(x: Any, /) -> Tensor:
    """The inverse of matrices."""
    return F.inverse(_matrices(x, "inv"))


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """A norm of matrices.

    Args:
        x: Matrices in the last two dims.
        keepdims: Whether these dims stay, with size 1.
        ord: "fro", "nuc", 1, 2, -1, -2, inf or -inf.

    Returns:
        The norms.

    Raises:
        InvalidArgumentError: There is no such norm.
    """
    _matrices(x, "matrix_norm", False)
    if ord == "fro":
        found = F.sqrt(_over.sum(F.square(F.abs(x)), axis=(-2, -1)))
    elif ord in ("nuc", 2, -2):
        values = svdvals(x)
        over = {"nuc": _over.sum, 2: _over.max, -2: _over.min}[ord]
        found = over(values, axis=-1)
    elif ord in (1, -1, math.inf, -math.inf):
        sums = _over.sum(F.abs(x), axis=-2 if abs(ord) == 1 else -1)
        found = (_over.max if ord > 0 else _over.min)(sums, axis=-1)
    else:
        raise InvalidArgumentError(f"matrix_norm: ord is {ord!r}; expected 'fro', 'nuc', 1, 2, -1, -2, inf or -inf")
    return reshape(found, (*x.shape[:-2], 1, 1)) if keepdims else found


def matrix_power(x: Any, n: int, /) -> Tensor:
    """Square matrices to a whole power."""
    _matrices(x, "matrix_power")
    if n == 0:
        return broadcast_to(eye(x.shape[-1], dtype=x.dtype, device=place_of(x)), x.shape)
    return F.matrix_power(x, n=n)


def _limit(x: Any, values: Any, rtol: Any) -> Any:
    """Singular values up to this count as zero."""
    from oprack_array_api.dtypes import finfo

    if rtol is None:
        rtol = max(x.shape[-2:]) * finfo(x.dtype).eps
    rtol = constant(rtol, values.dtype, x) if isinstance(rtol, int | float) else cast(rtol, values.dtype)
    largest = _over.max(values, axis=-1)
    return reshape(F.elementwise_mul(largest, broadcast_to(rtol, largest.shape)), (*largest.shape, 1))


def matrix_rank(x: Any, /, *, rtol: Any = None) -> Tensor:
    """How many singular values of matrices exceed rtol times the largest."""
    if 0 in x.shape[-2:]:
        return zeros(x.shape[:-2], dtype="int64", device=place_of(x))
    values = svdvals(x)
    return _over.sum(cast(F.greater_than(values, _limit(x, values, rtol)), "int64"), axis=-1)


def outer(x1: Any, x2: Any, /) -> Tensor:
    """The products of each element of one vector with each of another."""
    x, y = together(x1, x2, "outer")
    return F.elementwise_mul(reshape(x, (-1, 1)), reshape(y, (1, -1)))


def pinv(x: Any, /, *, rtol: Any = None) -> Tensor:
    """The Moore-Penrose inverse, by svd without the singular values up to rtol times the largest."""
    if 0 in x.shape:
        return zeros((*x.shape[:-2], x.shape[-1], x.shape[-2]), dtype=x.dtype, device=place_of(x))
    u, s, vh = svd(x, full_matrices=False)
    large = F.greater_than(s, _limit(x, s, rtol))
    inverted = _where(large, F.elementwise_div(constant(1.0, s.dtype, x), _where(large, s, 1.0)), 0.0)
    scaled = F.elementwise_mul(_adjoint(vh), cast(reshape(inverted, (*inverted.shape[:-1], 1, -1)), x.dtype))
    return F.matmul_v2(scaled, _adjoint(u))


def qr(x: Any, /, *, mode: str = "reduced") -> QR:
    """Unitary Q and upper triangular R with Q R = x; "complete" has a square Q."""
    if mode not in ("reduced", "complete"):
        raise InvalidArgumentError(f"qr: mode is {mode!r}; expected 'reduced' or 'complete'")
    found = F.qr(_matrices(x, "qr", False), mode=mode)
    return QR(found[0], found[1])


def solve(x1: Any, x2: Any, /) -> Tensor:
    """The solution of x1 y = x2; x2 of one dim is a vector."""
    x, y = together(_matrices(x1, "solve"), x2, "solve")
    return F.solve(x, y)


def svd(x: Any, /, *, full_matrices: bool = True) -> SVD:
    """U, singular values and the adjoint of V, whose product is x."""
    found = F.svd(_matrices(x, "svd", False), full_matrices=full_matrices)
    return SVD(found[0], found[1], found[2])


def svdvals(x: Any, /) -> Tensor:
    """Singular values, the greatest first."""
    return svd(x, full_matrices=False).S


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """The sums of a diagonal of matrices."""
    return _over.sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Tensor:
    r"""$$(\sum |x_i|^{ord})^{1 / ord}$$ over dims; for inf the greatest, -inf the least, 0 how many are not 0."""
    size = F.abs(require_tensor(x, "vector_norm"))
    over = {"axis": axis, "keepdims": keepdims}
    if ord in (math.inf, -math.inf):
        return (_over.max if ord > 0 else _over.min)(size, **over)
    if ord == 0:
        return cast(_over.count_nonzero(x, **over), size.dtype)
    if ord == 1:
        return _over.sum(size, **over)
    if ord == 2:
        return F.sqrt(_over.sum(F.square(size), **over))
    total = _over.sum(F.elementwise_pow(size, constant(ord, size.dtype, x)), **over)
    return F.elementwise_pow(total, constant(1 / ord, size.dtype, x))
