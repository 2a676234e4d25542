"""sparse_sin and its gradient."""

from __future__ import annotations

from oprack_sparse.ops.unary._family import GradFromX, Unary


class SparseSin(Unary, type="sparse_sin"):
    r"""$$out = \sin x$$ of the listed elements."""


class SparseSinGrad(GradFromX, of=SparseSin):
    r"""$$x@GRAD = out@GRAD \cos x$$ of the elements that x lists."""
