"""sparse_acosh and its gradient."""

from __future__ import annotations

from oprack_sparse.ops.unary._family import GradFromX, Unary


class SparseAcosh(Unary, type="sparse_acosh"):
    r"""$$out = \operatorname{arcosh} x$$ of the listed elements."""


class SparseAcoshGrad(GradFromX, of=SparseAcosh):
    r"""$$x@GRAD = out@GRAD / \sqrt{x^2 - 1}$$ of the elements that x lists."""
