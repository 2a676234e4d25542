"""Linear algebra beyond what the ops of Fluid give."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import oprack
from oprack import functional as F
from oprack.errors import InvalidArgumentError

from oprack_paddle.functions._tools import promoted

Tensor = Any


def _t(x: Tensor) -> Tensor:
    return x.transpose([*range(x.ndim - 2), x.ndim - 1, x.ndim - 2])


def _h(x: Tensor) -> Tensor:
    return F.conj(_t(x)) if str(x.dtype).startswith("complex") else _t(x)


def tensordot(x: Tensor, y: Tensor, axes: Any = 2, name: Any = None) -> Tensor:
    """Sums over pairs of dims of two tensors."""
    a, b = _pairs(axes, x.ndim, y.ndim)
    for i, j in zip(a, b, strict=True):
        if x.shape[i] != y.shape[j] and x.shape[i] == 1:
            y = y.sum(j, keepdim=True)
        elif x.shape[i] != y.shape[j] and y.shape[j] == 1:
            x = x.sum(i, keepdim=True)
    free_x, free_y = [i for i in range(x.ndim) if i not in a], [j for j in range(y.ndim) if j not in b]
    shape = [x.shape[i] for i in free_x] + [y.shape[j] for j in free_y]
    inner = math.prod(x.shape[i] for i in a)
    left = x.transpose([*free_x, *a]).reshape([math.prod(x.shape[i] for i in free_x), inner])
    right = y.transpose([*b, *free_y]).reshape([inner, math.prod(y.shape[j] for j in free_y)])
    return F.matmul_v2(left, right).reshape(shape)


def _pairs(axes: Any, m: int, n: int) -> tuple[list[int], list[int]]:
    if hasattr(axes, "tolist"):
        axes = axes.tolist()
    if isinstance(axes, int):
        return list(range(m - axes, m)), list(range(axes))
    axes = [list(a) if isinstance(a, list | tuple) else a.tolist() if hasattr(a, "tolist") else a for a in axes]
    if all(isinstance(a, int) for a in axes):
        a = b = axes
    else:
        a, b = axes[0], axes[1] if len(axes) > 1 else axes[0]
    if len(a) < len(b):
        a = a + b[len(a) :]
    elif len(b) < len(a):
        b = b + a[len(b) :]
    return [i % m for i in a], [j % n for j in b]


def multi_dot(x: Any, name: Any = None) -> Tensor:
    """The product of matrices, in the order that is cheapest."""
    return F.multi_dot(list(x))


def slogdet(x: Tensor, name: Any = None) -> Tensor:
    """Sign and logarithm of the absolute value of determinants, stacked."""
    return F.slogdeterminant(x)


def pinv(x: Tensor, rcond: Any = 1e-15, hermitian: bool = False, name: Any = None) -> Tensor:
    """The pseudo-inverse; singular values below rcond times the largest count as zero."""
    if hermitian:
        w, u = F.eigh(x)
        size = F.abs(w)
        v = u
    else:
        u, size, vh = F.svd(x, full_matrices=False)
        w, v = size, _h(vh)
    limit = oprack.max(size, -1, True) * rcond
    keep = size > limit
    ones = oprack.ones_like(w)
    inverse = oprack.where(keep, ones / oprack.where(keep, w, ones), oprack.zeros_like(w))
    return F.matmul_v2(v * inverse.unsqueeze(-2).astype(v.dtype), _h(u))


def svd(x: Tensor, full_matrices: bool = False, name: Any = None) -> Any:
    """Left vectors, singular values, and right vectors, conjugated and transposed."""
    return F.svd(x, full_matrices=full_matrices)


def lu(x: Tensor, pivot: bool = True, get_infos: bool = False, name: Any = None) -> Any:
    """The LU decomposition, with pivots that count from 1; how it went, too, if asked."""
    found, pivots, infos = F.lu(x, pivots=pivot)
    return (found, pivots, infos) if get_infos else (found, pivots)


def lu_unpack(
    x: Tensor, y: Tensor, unpack_ludata: bool = True, unpack_pivots: bool = True, name: Any = None
) -> tuple[Tensor, Tensor, Tensor]:
    """P, L and U of a decomposition."""
    lower, upper, rows = None, None, None
    found = F.lu_unpack(x, y, unpack_ludata=unpack_ludata, unpack_pivots=unpack_pivots)
    rows, lower, upper = found
    return rows, lower, upper


def cond(x: Tensor, p: Any = None, name: Any = None) -> Tensor:
    """The condition number by a norm; by the 2-norm without p."""
    if p in (None, 2, -2):
        s = F.svd(x, full_matrices=False)[1]
        high, low = oprack.max(s, -1), oprack.min(s, -1)
        return low / high if p == -2 else high / low
    if p == "nuc":
        return _nuclear(x) * _nuclear(F.inverse(x))
    return matrix_norm(x, p) * matrix_norm(F.inverse(x), p)


def _nuclear(x: Tensor) -> Tensor:
    return F.svd(x, full_matrices=False)[1].sum(-1)


def matrix_norm(x: Tensor, p: Any = "fro", axis: Any = (-2, -1), keepdim: bool = False, name: Any = None) -> Tensor:
    """A norm of matrices: "fro", "nuc", or of order 1, 2, inf and their negatives."""
    row, col = (a % x.ndim for a in axis)
    if p == "fro":
        return oprack.sqrt((F.abs(x) ** 2).sum([row, col], keepdim=keepdim))
    if p in ("nuc", 2, -2):
        order = [i for i in range(x.ndim) if i not in (row, col)] + [row, col]
        s = F.svd(x.transpose(order), full_matrices=False)[1]
        found = s.sum(-1) if p == "nuc" else oprack.max(s, -1) if p == 2 else oprack.min(s, -1)
        if keepdim:
            for a in sorted((row, col)):
                found = found.unsqueeze(a)
        return found
    along, rest = (row, col) if abs(p) == 1 else (col, row)
    sums = F.abs(x).sum(along, keepdim=True)
    found = oprack.max(sums, rest, True) if p > 0 else oprack.min(sums, rest, True)
    return found if keepdim else found.squeeze([row, col])


def vector_norm(x: Tensor, p: float = 2.0, axis: Any = None, keepdim: bool = False, name: Any = None) -> Tensor:
    """The p-norm of all elements or along dims."""
    size, dims = F.abs(x), None if axis is None else [axis] if isinstance(axis, int) else list(axis)
    if p == math.inf:
        return oprack.max(size, dims, keepdim)
    if p == -math.inf:
        return oprack.min(size, dims, keepdim)
    if p == 0:
        return (size != 0).astype(x.dtype).sum(dims, keepdim=keepdim)
    return ((size**p).sum(dims, keepdim=keepdim)) ** (1.0 / p)


def norm(x: Tensor, p: Any = None, axis: Any = None, keepdim: bool = False, name: Any = None) -> Tensor:
    """A norm of vectors, of matrices, or of all elements."""
    if isinstance(axis, list | tuple) and len(axis) == 1:
        axis = axis[0]
    if isinstance(axis, list | tuple):
        if p is None or p == "fro":
            return matrix_norm(x, "fro", axis, keepdim)
        if p == "nuc":
            return matrix_norm(x, p, axis, keepdim)
        return vector_norm(x, p, axis, keepdim)
    if p == "nuc":
        raise ValueError("norm: p is 'nuc'; expected two dims as axis")
    return vector_norm(x, 2.0 if p in (None, "fro") else p, axis, keepdim)


def eigvalsh(x: Tensor, UPLO: str = "L", name: Any = None) -> Tensor:
    """The eigenvalues of symmetric or Hermitian matrices."""
    found = F.eigvalsh(x, UPLO=UPLO, is_test=not x.requires_grad if isinstance(x, oprack.Tensor) else False)
    return found[0] if isinstance(found, tuple) else found


def lstsq(x: Tensor, y: Tensor, rcond: Any = None, driver: Any = None, name: Any = None) -> Any:
    """The least squares solution: solution, residuals, rank, singular values."""
    driver = driver or "gelsy"
    if rcond is None:
        rcond = float(np.finfo(x.dtype).eps) * max(x.shape[-2:])
    found = F.lstsq(x, y, rcond=float(rcond), driver=driver)
    solution, rank, singular = found.solution, found.rank, found.singular_values
    m, n = x.shape[-2:]
    gap = F.matmul_v2(x, solution) - y
    full_rank = driver == "gels" or bool((np.asarray(rank) == n).all())
    none = oprack.zeros([0], x.dtype)
    residuals = (gap * gap).sum(-2) if m > n and driver != "gelsy" and full_rank else none
    rank = oprack.zeros([0], "int32") if driver == "gels" else rank
    return solution, residuals, rank, singular if driver in ("gelsd", "gelss") else none


def matmul(x: Tensor, y: Tensor, transpose_x: bool = False, transpose_y: bool = False, name: Any = None) -> Tensor:
    """The product of matrices; vectors at both ends are allowed."""
    return F.matmul_v2(*promoted(x, y), trans_x=transpose_x, trans_y=transpose_y)


def kron(x: Tensor, y: Tensor, name: Any = None) -> Tensor:
    """The Kronecker product."""
    return F.kron(*promoted(x, y))


def qr(x: Tensor, mode: str = "reduced", name: Any = None) -> Any:
    """Q and R; R alone by the mode "r"."""
    q, r = F.qr(x, mode=mode)
    return r if mode == "r" else (q, r)


def householder_product(x: Tensor, tau: Tensor, name: Any = None) -> Tensor:
    """The first columns of the product of Householder reflections."""
    m, n = x.shape[-2], x.shape[-1]
    eye = oprack.to_tensor(np.broadcast_to(np.eye(m, dtype=x.dtype), (*x.shape[:-2], m, m)).copy())
    found = eye
    for i in range(tau.shape[-1]):
        column = x[..., i : i + 1]
        mask = np.zeros((m, 1), x.dtype)
        mask[i + 1 :] = 1
        one = np.zeros((m, 1), x.dtype)
        one[i] = 1
        v = column * oprack.to_tensor(mask) + oprack.to_tensor(one)
        step = tau[..., i].reshape([*tau.shape[:-1], 1, 1]) * F.matmul_v2(v, _h(v))
        found = found - F.matmul_v2(found, step)
    return found[..., :n]


def ormqr(x: Tensor, tau: Tensor, y: Tensor, left: bool = True, transpose: bool = False, name: Any = None) -> Tensor:
    """The product of Q of a QR decomposition and a matrix."""
    m = x.shape[-2]
    square = oprack.concat([x, oprack.zeros([*x.shape[:-1], m - x.shape[-1]], x.dtype)], -1) if x.shape[-1] < m else x
    q = householder_product(square, tau)
    q = _h(q) if transpose else q
    return F.matmul_v2(q, y) if left else F.matmul_v2(y, q)


def svd_lowrank(
    x: Tensor, q: int = 6, niter: int = 2, M: Any = None, name: Any = None
) -> tuple[Tensor, Tensor, Tensor]:
    """The largest singular values and their vectors."""
    x = x if M is None else x - M
    q = 6 if q is None else q
    u, s, vh = F.svd(x, full_matrices=False)
    return u[..., :q], s[..., :q], _h(vh)[..., :q]


def pca_lowrank(
    x: Tensor, q: Any = None, center: bool = True, niter: int = 2, name: Any = None
) -> tuple[Tensor, Tensor, Tensor]:
    """The principal components: the largest singular values of the centred rows and their vectors."""
    q = min(6, x.shape[-2], x.shape[-1]) if q is None else q
    if not 0 <= q <= min(x.shape[-2], x.shape[-1]):
        raise InvalidArgumentError(f"pca_lowrank: q is {q}; expected a number up to the smaller dim of {list(x.shape)}")
    return svd_lowrank(x - x.mean(-2, keepdim=True) if center else x, q, niter)


def cholesky_solve(x: Tensor, y: Tensor, upper: bool = False, name: Any = None) -> Tensor:
    """The solution of a system by the Cholesky factor of its matrix."""
    return F.cholesky_solve(x, y, upper=upper)


def vecdot(x: Tensor, y: Tensor, axis: int = -1, name: Any = None) -> Tensor:
    """Products of vectors along an axis."""
    return ((F.conj(x) if str(x.dtype).startswith("complex") else x) * y).sum(axis)


def addmm(input: Tensor, x: Tensor, y: Tensor, beta: float = 1.0, alpha: float = 1.0, name: Any = None) -> Tensor:
    """beta times a matrix, and alpha times a product of two."""
    return F.addmm(input, x, y, Alpha=alpha, Beta=beta)


def cross(x: Tensor, y: Tensor, axis: int = 9, name: Any = None) -> Tensor:
    """Vector products along a dim of three; 9 stands for the first such dim."""
    return F.cross(x, y, dim=axis)
