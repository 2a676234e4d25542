"""Kernels of eigh and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_linalg.kernels._matrices import (
    BOTH,
    REAL_AND_COMPLEX,
    adjoint,
    diagonal_matrix,
    hermitian,
    inverse_differences,
)
from oprack_linalg.kernels.eigen._family import converging


@kernel("eigh", place=BOTH, dtypes=REAL_AND_COMPLEX)
def eigh(X: Array, *, UPLO: str, xp: ArrayModule) -> tuple[Array, Array]:
    """LAPACK's syevd or heevd."""
    with converging("eigh"):
        values, vectors = xp.linalg.eigh(X, UPLO=UPLO)
    return values, vectors


@kernel("eigh_grad", place=BOTH, dtypes=REAL_AND_COMPLEX)
def eigh_grad(
    Eigenvalues: Array, Eigenvectors: Array, Eigenvalues_grad: Array, Eigenvectors_grad: Array, *, xp: ArrayModule
) -> Array:
    """The Hermitian part of the gradient in the basis of V, turned back."""
    turn = adjoint(Eigenvectors) @ Eigenvectors_grad * inverse_differences(Eigenvalues, xp)
    return hermitian(Eigenvectors @ (turn + diagonal_matrix(Eigenvalues_grad, xp)) @ adjoint(Eigenvectors))
