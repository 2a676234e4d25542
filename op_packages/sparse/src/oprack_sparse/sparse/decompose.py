"""Decompositions of sparse matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack import functional as F
from oprack.errors import InvalidArgumentError

from oprack_sparse.sparse.binary import matmul
from oprack_sparse.sparse.shapes import transpose

if TYPE_CHECKING:
    from oprack import Tensor


def pca_lowrank(x: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    r"""$$x - \bar{x} \approx U \operatorname{diag}(S)\, V^T$$ by products of x with a random matrix of q columns.

    Args:
        x: A sparse matrix [m, n].
        q: How many singular values to find; by default 6, or as many as there are.
        center: Whether to subtract the mean of each column, which is never done to x itself.
        niter: How often to multiply by x and its transpose, which makes the result more exact.

    Returns:
        U [m, q], S [q] and V [n, q].

    Raises:
        InvalidArgumentError: x is no matrix, or q no number of its singular values.
    """
    if len(x.shape) != 2:
        raise InvalidArgumentError(f"pca_lowrank: x has shape {list(x.shape)}; expected a matrix")
    rows, columns = x.shape
    count = min(6, rows, columns) if q is None else q
    if not 0 < count <= min(rows, columns) or niter < 0:
        raise InvalidArgumentError(
            f"pca_lowrank: q is {q}, niter {niter} for x of shape {list(x.shape)}; expected 0 < q <= "
            f"{min(rows, columns)} and niter of at least 0"
        )
    turned = transpose(x, [1, 0])
    ones = F.fill_constant(shape=[rows, 1], value=1.0, dtype=str(x.dtype))
    mean = matmul(turned, ones) * (1.0 / rows if center else 0.0)

    def times(v: Tensor) -> Tensor:
        return matmul(x, v) - F.matmul_v2(mean, v, trans_x=True)

    def back(u: Tensor) -> Tensor:
        return matmul(turned, u) - F.matmul_v2(mean, F.matmul_v2(ones, u, trans_x=True))

    basis = F.qr(times(F.gaussian_random(shape=[columns, count], dtype=str(x.dtype)))).q
    for _ in range(niter):
        basis = F.qr(times(F.qr(back(basis)).q)).q
    v, s, turn = F.svd(back(basis))
    return F.matmul_v2(basis, turn, trans_y=True), s, v
