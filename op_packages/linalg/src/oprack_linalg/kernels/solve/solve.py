"""Kernels of solve and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel

from oprack_linalg.kernels import _matrices
from oprack_linalg.kernels._matrices import BOTH, REAL_AND_COMPLEX, adjoint, reduced_to


def _is_vectors(X: Array, Y: Array) -> bool:
    return Y.ndim == 1 or Y.shape == X.shape[:-1]


@kernel("solve", place=BOTH, dtypes=REAL_AND_COMPLEX)
def solve(X: Array, Y: Array, *, xp: ArrayModule) -> Array:
    """LAPACK's gesv."""
    if _is_vectors(X, Y):
        return _matrices.solve("solve", "X", X, Y[..., None], xp)[..., 0]
    return _matrices.solve("solve", "X", X, Y, xp)


@kernel("solve_grad", place=BOTH, dtypes=REAL_AND_COMPLEX)
def solve_grad(
    X: Array, Y: Array, Out: Array, Out_grad: Array, *, ctx: KernelContext, xp: ArrayModule
) -> tuple[Array | None, Array]:
    """X^-H Out@GRAD, and minus that times Out^H."""
    shape = Y.shape
    if _is_vectors(X, Y):
        shape, Out, Out_grad = (*shape, 1), Out[..., None], Out_grad[..., None]
    by_y = _matrices.solve("solve_grad", "X", adjoint(X), Out_grad, xp)
    by_x = reduced_to(-by_y @ adjoint(Out), X.shape) if ctx.wants("X@GRAD") else None
    return by_x, reduced_to(by_y, shape).reshape(Y.shape)
