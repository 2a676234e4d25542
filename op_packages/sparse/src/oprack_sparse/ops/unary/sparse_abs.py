"""sparse_abs and its gradient."""

from __future__ import annotations

from oprack_sparse.ops.unary._family import GradFromX, Unary


class SparseAbs(Unary, type="sparse_abs"):
    r"""$$out = |x|$$ of the listed elements."""


class SparseAbsGrad(GradFromX, of=SparseAbs):
    r"""$$x@GRAD = out@GRAD \cdot \mathrm{sign}(x)$$ of the elements that x lists."""
