"""Kernels of eigvalsh and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_linalg.kernels._matrices import BOTH, REAL_AND_COMPLEX, adjoint
from oprack_linalg.kernels.eigen._family import converging


@kernel("eigvalsh", place=BOTH, dtypes=REAL_AND_COMPLEX)
def eigvalsh(X: Array, *, UPLO: str, is_test: bool, xp: ArrayModule) -> tuple[Array, Array]:
    """Eigenvalues, and the vectors where a gradient may want them."""
    with converging("eigvalsh"):
        if is_test:
            return xp.linalg.eigvalsh(X, UPLO=UPLO), xp.empty(0, X.dtype)
        values, vectors = xp.linalg.eigh(X, UPLO=UPLO)
    return values, vectors


@kernel("eigvalsh_grad", place=BOTH, dtypes=REAL_AND_COMPLEX)
def eigvalsh_grad(Eigenvectors: Array, Eigenvalues_grad: Array) -> Array:
    """V diag(gradient) V^H."""
    return (Eigenvectors * Eigenvalues_grad[..., None, :]) @ adjoint(Eigenvectors)
