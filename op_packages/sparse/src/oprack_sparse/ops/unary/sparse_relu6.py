"""sparse_relu6 and its gradient."""

from __future__ import annotations

from oprack_sparse.ops.unary._family import GradFromOut, Unary


class SparseRelu6(Unary, type="sparse_relu6"):
    r"""$$out = \min(\max(x, 0), 6)$$ of the listed elements."""


class SparseRelu6Grad(GradFromOut, of=SparseRelu6):
    r"""$$x@GRAD = out@GRAD \cdot [0 < out < 6]$$ of the elements that x lists."""
