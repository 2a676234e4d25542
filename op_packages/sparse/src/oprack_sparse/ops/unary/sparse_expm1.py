"""sparse_expm1 and its gradient."""

from __future__ import annotations

from oprack_sparse.ops.unary._family import GradFromOut, Unary


class SparseExpm1(Unary, type="sparse_expm1"):
    r"""$$out = e^x - 1$$ of the listed elements."""


class SparseExpm1Grad(GradFromOut, of=SparseExpm1):
    r"""$$x@GRAD = out@GRAD (out + 1)$$ of the elements that x lists."""
