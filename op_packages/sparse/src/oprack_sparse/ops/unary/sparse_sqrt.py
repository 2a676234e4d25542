"""sparse_sqrt and its gradient."""

from __future__ import annotations

from oprack_sparse.ops.unary._family import GradFromOut, Unary


class SparseSqrt(Unary, type="sparse_sqrt"):
    r"""$$out = \sqrt{x}$$ of the listed elements."""


class SparseSqrtGrad(GradFromOut, of=SparseSqrt):
    r"""$$x@GRAD = out@GRAD / (2\,out)$$ of the elements that x lists."""
