"""sparse_asinh and its gradient."""

from __future__ import annotations

from oprack_sparse.ops.unary._family import GradFromX, Unary


class SparseAsinh(Unary, type="sparse_asinh"):
    r"""$$out = \operatorname{arsinh} x$$ of the listed elements."""


class SparseAsinhGrad(GradFromX, of=SparseAsinh):
    r"""$$x@GRAD = out@GRAD / \sqrt{x^2 + 1}$$ of the elements that x lists."""
