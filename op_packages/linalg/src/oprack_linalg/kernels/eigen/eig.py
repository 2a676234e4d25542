"""Kernels of eig and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel

from oprack_linalg.kernels._matrices import (
    REAL_AND_COMPLEX,
    adjoint,
    diagonal,
    diagonal_matrix,
    inverse_differences,
    solve,
)
from oprack_linalg.kernels.eigen._family import converging


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
