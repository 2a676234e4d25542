"""Kernel of lstsq."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import FLOATS

from oprack_linalg.kernels._matrices import BOTH, refusing


@kernel("lstsq", place=BOTH, dtypes=FLOATS)
def lstsq(X: Array, Y: Array, *, rcond: float, driver: str, xp: ArrayModule) -> tuple[Array, Array, Array, Array]:
    """By singular values, of which those near zero are left out."""
    rows, columns = X.shape[-2:]
    with refusing("lstsq", "X", "holds NaN or infinities", "expected finite numbers"):
        u, s, vh = xp.linalg.svd(X, full_matrices=False)
    greatest = s[..., :1]
    # the precision of the dtype bounds what can be told from zero, whatever rcond says
    least = greatest * max(rcond, xp.finfo(X.dtype).eps)
    kept = s > least
    weight = xp.where(kept, 1 / xp.where(kept, s, 1), X.dtype.type(0))
    solution = vh.swapaxes(-1, -2) @ (weight[..., None] * (u.swapaxes(-1, -2) @ Y))
    nothing = xp.empty(0, X.dtype)
    residuals = xp.square(Y - X @ solution).sum(axis=-2) if rows > columns else nothing
    rank = xp.empty(0, xp.int32) if driver == "gels" else kept.sum(axis=-1, dtype=xp.int32)
    return solution, residuals, rank, s if driver in ("gelsd", "gelss") else nothing
