"""Kernels of determinant and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_linalg.kernels._matrices import BOTH, REAL_AND_COMPLEX


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
