"""sparse_relu and its gradient."""

from __future__ import annotations

from oprack_sparse.ops.unary._family import GradFromOut, Unary


class SparseRelu(Unary, type="sparse_relu"):
    r"""$$out = \max(x, 0)$$ of the listed elements."""


class SparseReluGrad(GradFromOut, of=SparseRelu):
    r"""$$x@GRAD = out@GRAD \cdot [out > 0]$$ of the elements that x lists."""
