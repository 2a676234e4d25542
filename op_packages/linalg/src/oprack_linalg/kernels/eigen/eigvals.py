"""Kernel of eigvals."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_linalg.kernels._matrices import BOTH, REAL_AND_COMPLEX
from oprack_linalg.kernels.eigen._family import converging


@kernel("eigvals", place=BOTH, dtypes=REAL_AND_COMPLEX)
def eigvals(X: Array, *, xp: ArrayModule) -> Array:
    """LAPACK's geev, without vectors: of the transpose, which has the same eigenvalues, in the order in which Paddle,
    which hands geev its rows as columns, finds them.
    """
    with converging("eigvals"):
        return xp.linalg.eigvals(xp.swapaxes(X, -1, -2)).astype(xp.result_type(X.dtype, xp.complex64), copy=False)
