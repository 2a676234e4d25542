"""sparse_tanh and its gradient."""

from __future__ import annotations

from oprack_sparse.ops.unary._family import GradFromOut, Unary


class SparseTanh(Unary, type="sparse_tanh"):
    r"""$$out = \tanh x$$ of the listed elements."""


class SparseTanhGrad(GradFromOut, of=SparseTanh):
    r"""$$x@GRAD = out@GRAD (1 - out^2)$$ of the elements that x lists."""
