"""Kernels of slogdeterminant and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_linalg.kernels._matrices import BOTH, REAL_AND_COMPLEX, adjoint, singular


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
