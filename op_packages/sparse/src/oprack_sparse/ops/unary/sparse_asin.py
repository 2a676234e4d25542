"""sparse_asin and its gradient."""

from __future__ import annotations

from oprack_sparse.ops.unary._family import GradFromX, Unary


class SparseAsin(Unary, type="sparse_asin"):
    r"""$$out = \arcsin x$$ of the listed elements."""


class SparseAsinGrad(GradFromX, of=SparseAsin):
    r"""$$x@GRAD = out@GRAD / \sqrt{1 - x^2}$$ of the elements that x lists."""
