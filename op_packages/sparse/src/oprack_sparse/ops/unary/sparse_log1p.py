"""sparse_log1p and its gradient."""

from __future__ import annotations

from oprack_sparse.ops.unary._family import GradFromX, Unary


class SparseLog1P(Unary, type="sparse_log1p"):
    r"""$$out = \ln(1 + x)$$ of the listed elements."""


class SparseLog1PGrad(GradFromX, of=SparseLog1P):
    r"""$$x@GRAD = out@GRAD / (1 + x)$$ of the elements that x lists."""
