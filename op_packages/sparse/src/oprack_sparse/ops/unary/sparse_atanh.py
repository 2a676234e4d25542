"""sparse_atanh and its gradient."""

from __future__ import annotations

from oprack_sparse.ops.unary._family import GradFromX, Unary


class SparseAtanh(Unary, type="sparse_atanh"):
    r"""$$out = \operatorname{artanh} x$$ of the listed elements."""


class SparseAtanhGrad(GradFromX, of=SparseAtanh):
    r"""$$x@GRAD = out@GRAD / (1 - x^2)$$ of the elements that x lists."""
