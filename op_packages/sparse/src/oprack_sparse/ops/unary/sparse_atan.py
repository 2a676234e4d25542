"""sparse_atan and its gradient."""

from __future__ import annotations

from oprack_sparse.ops.unary._family import GradFromX, Unary


class SparseAtan(Unary, type="sparse_atan"):
    r"""$$out = \arctan x$$ of the listed elements."""


class SparseAtanGrad(GradFromX, of=SparseAtan):
    r"""$$x@GRAD = out@GRAD / (1 + x^2)$$ of the elements that x lists."""
