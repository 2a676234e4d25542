"""Kernels of inverse and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_linalg.kernels._matrices import BOTH, REAL_AND_COMPLEX, adjoint, singular


@kernel("inverse", place=BOTH, dtypes=REAL_AND_COMPLEX)
def inverse(Input: Array, *, xp: ArrayModule) -> Array:
    """The inverse of each matrix."""
    with singular("inverse", "Input"):
        return xp.linalg.inv(Input)


@kernel("inverse_grad", place=BOTH, dtypes=REAL_AND_COMPLEX)
def inverse_grad(Output: Array, Output_grad: Array) -> Array:
    """-Output^H Output@GRAD Output^H."""
    turned = adjoint(Output)
    return -(turned @ Output_grad @ turned)
