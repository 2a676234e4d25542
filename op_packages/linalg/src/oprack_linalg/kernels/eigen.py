"""Kernels of eigenvalues and eigenvectors."""

from __future__ import annotations

from typing import Any

from oprack.kernel import Array, ArrayModule, KernelContext, kernel

from oprack_linalg.kernels._matrices import (
    BOTH,
    REAL_AND_COMPLEX,
    adjoint,
    diagonal,
    diagonal_matrix,
    hermitian,
    inverse_differences,
    refusing,
    solve,
)


# shared ---------------------------------------------------------------------------------------------------------------
# What kernels of eigenvalue ops share.
def converging(op_type: str) -> Any:
    """Refuse matrices for which the iteration finds no end."""
    return refusing(op_type, "X", "has no eigenvalues that the iteration finds", "expected finite numbers")


# eig ------------------------------------------------------------------------------------------------------------------
@kernel("eig", place=("cpu", "cuda"), dtypes=REAL_AND_COMPLEX)
def eig(X: Array, *, xp: ArrayModule) -> tuple[Array, Array]:
    """LAPACK's geev."""
    dtype = xp.result_type(X.dtype, xp.complex64)
    with converging("eig"):
        values, vectors = xp.linalg.eig(X)
    return values.astype(dtype, copy=False), vectors.astype(dtype, copy=False)


@kernel("eig_grad", place=("cpu", "cuda"), dtypes=REAL_AND_COMPLEX)
def eig_grad(
    Eigenvalues: Array,
    Eigenvectors: Array,
    Eigenvalues_grad: Array,
    Eigenvectors_grad: Array,
    *,
    ctx: KernelContext,
    xp: ArrayModule,
) -> Array:
    """V^-H times the gradient in the basis of V, times V^H."""
    adjoint_vectors = adjoint(Eigenvectors)
    turn = adjoint_vectors @ Eigenvectors_grad
    # a column of V may not grow
    turn = turn - adjoint_vectors @ Eigenvectors * diagonal(turn, xp).real[..., None, :]
    inner = turn * inverse_differences(Eigenvalues, xp).conj() + diagonal_matrix(Eigenvalues_grad, xp)
    out = solve("eig_grad", "Eigenvectors", adjoint_vectors, inner @ adjoint_vectors, xp)
    return out.real if (ctx.output_dtype("X@GRAD") or "").startswith("float") else out


# eigh -----------------------------------------------------------------------------------------------------------------
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


# eigvals --------------------------------------------------------------------------------------------------------------
@kernel("eigvals", place=BOTH, dtypes=REAL_AND_COMPLEX)
def eigvals(X: Array, *, xp: ArrayModule) -> Array:
    """LAPACK's geev, without vectors: of the transpose, which has the same eigenvalues, in the order in which Paddle,
    which hands geev its rows as columns, finds them.
    """
    with converging("eigvals"):
        return xp.linalg.eigvals(xp.swapaxes(X, -1, -2)).astype(xp.result_type(X.dtype, xp.complex64), copy=False)


# eigvalsh -------------------------------------------------------------------------------------------------------------
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
