"""Kernels of cholesky and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import FLOATS

from oprack_linalg.kernels._matrices import BOTH, REAL_AND_COMPLEX, adjoint, half_diagonal, hermitian, refusing
from oprack_linalg.kernels._triangular import solve_triangle


@kernel("cholesky", place=BOTH, dtypes=REAL_AND_COMPLEX)
def cholesky(X: Array, *, upper: bool, xp: ArrayModule) -> Array:
    """The triangular factor."""
    problem, advice = "is not positive definite", "expected symmetric ones with positive eigenvalues"
    with refusing("cholesky", "X", problem, advice):
        factor = xp.linalg.cholesky(adjoint(X) if upper else X)
    return adjoint(factor) if upper else factor


@kernel("cholesky_grad", place=BOTH, dtypes=FLOATS)
def cholesky_grad(Out: Array, Out_grad: Array, *, upper: bool, xp: ArrayModule) -> Array:
    """Half of L^-T (Phi + Phi^T) L^-1."""
    factor, gradient = (a.swapaxes(-1, -2) if upper else a for a in (Out, Out_grad))

    def by_transposed_factor(b: Array) -> Array:
        return solve_triangle("cholesky_grad", "Out", factor, b, upper=False, transpose=True, xp=xp)

    middle = half_diagonal(factor.swapaxes(-1, -2) @ gradient, xp)
    return hermitian(by_transposed_factor(by_transposed_factor(middle).swapaxes(-1, -2)))
