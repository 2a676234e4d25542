"""sparse_square and its gradient."""

from __future__ import annotations

from oprack_sparse.ops.unary._family import GradFromX, Unary


class SparseSquare(Unary, type="sparse_square"):
    r"""$$out = x^2$$ of the listed elements."""


class SparseSquareGrad(GradFromX, of=SparseSquare):
    r"""$$x@GRAD = 2 x \cdot out@GRAD$$ of the elements that x lists."""
