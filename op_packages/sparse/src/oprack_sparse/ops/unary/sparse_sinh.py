"""sparse_sinh and its gradient."""

from __future__ import annotations

from oprack_sparse.ops.unary._family import GradFromX, Unary


class SparseSinh(Unary, type="sparse_sinh"):
    r"""$$out = \sinh x$$ of the listed elements."""


class SparseSinhGrad(GradFromX, of=SparseSinh):
    r"""$$x@GRAD = out@GRAD \cosh x$$ of the elements that x lists."""
