"""Kernels of numbers that say something of a matrix."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import FLOATS

from oprack_linalg.kernels._matrices import BOTH, REAL_AND_COMPLEX, adjoint, refusing, singular


# determinant ----------------------------------------------------------------------------------------------------------
@kernel("determinant", place=BOTH, dtypes=REAL_AND_COMPLEX)
def determinant(Input: Array, *, xp: ArrayModule) -> Array:
    """By elimination."""
    return xp.asarray(xp.linalg.det(Input), dtype=Input.dtype)


@kernel("determinant_grad", place=BOTH, dtypes=REAL_AND_COMPLEX)
def determinant_grad(Input: Array, Out: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Out@GRAD times the transposed adjugate, which the singular values give for singular matrices as well."""
    u, s, vh = xp.linalg.svd(Input)
    n = s.shape[-1]
    # products of all singular values but one
    others = xp.where(xp.eye(n, dtype=bool), s.dtype.type(1), s[..., None, :]).prod(axis=-1)
    sign = (xp.linalg.det(u) * xp.linalg.det(vh)).conj()
    return (Out_grad.reshape(sign.shape) * sign)[..., None, None] * ((u * others[..., None, :]) @ vh)


# matrix_rank ----------------------------------------------------------------------------------------------------------
@kernel("matrix_rank", place=BOTH, dtypes=FLOATS)
def matrix_rank(
    X: Array, TolTensor: Array | None = None, *, tol: float, hermitian: bool, use_default_tol: bool, xp: ArrayModule
) -> Array:
    """How many singular values are above the tolerance."""
    with refusing("matrix_rank", "X", "holds NaN or infinities", "expected finite numbers"):
        s = xp.abs(xp.linalg.eigvalsh(X)) if hermitian else xp.linalg.svd(X, compute_uv=False)
    least = xp.asarray(0.0 if use_default_tol else tol, X.dtype) if TolTensor is None else TolTensor.astype(X.dtype)
    least = least[..., None]
    if use_default_tol and s.shape[-1]:
        precision = X.dtype.type(xp.finfo(X.dtype).eps * max(X.shape[-2:]))
        least = xp.maximum(least, s.max(axis=-1, keepdims=True) * precision)
    return xp.asarray((s > least).sum(axis=-1), dtype=xp.int32)


# slogdeterminant ------------------------------------------------------------------------------------------------------
@kernel("slogdeterminant", place=BOTH, dtypes=REAL_AND_COMPLEX)
def slogdeterminant(Input: Array, *, xp: ArrayModule) -> Array:
    """Signs and logarithms."""
    sign, logarithm = xp.linalg.slogdet(Input)
    return xp.stack([xp.asarray(sign), xp.asarray(logarithm)]).astype(Input.dtype, copy=False)


@kernel("slogdeterminant_grad", place=BOTH, dtypes=REAL_AND_COMPLEX)
def slogdeterminant_grad(Input: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """The adjoint of the inverse times the gradient of the logarithm."""
    with singular("slogdeterminant_grad", "Input"):
        inverse = xp.linalg.inv(Input)
    return Out_grad[1].real[..., None, None] * adjoint(inverse)
