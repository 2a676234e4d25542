"""sparse_tan and its gradient."""

from __future__ import annotations

from oprack_sparse.ops.unary._family import GradFromX, Unary


class SparseTan(Unary, type="sparse_tan"):
    r"""$$out = \tan x$$ of the listed elements."""


class SparseTanGrad(GradFromX, of=SparseTan):
    r"""$$x@GRAD = out@GRAD (1 + \tan^2 x)$$ of the elements that x lists."""
