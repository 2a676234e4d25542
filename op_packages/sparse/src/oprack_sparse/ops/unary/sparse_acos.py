"""sparse_acos and its gradient."""

from __future__ import annotations

from oprack_sparse.ops.unary._family import GradFromX, Unary


class SparseAcos(Unary, type="sparse_acos"):
    r"""$$out = \arccos x$$ of the listed elements."""


class SparseAcosGrad(GradFromX, of=SparseAcos):
    r"""$$x@GRAD = -out@GRAD / \sqrt{1 - x^2}$$ of the elements that x lists."""
