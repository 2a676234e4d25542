"""sparse_subtract and its gradient."""

from __future__ import annotations

from oprack_sparse.ops.elementwise._family import Binary, BinaryGrad


class SparseSubtract(Binary, type="sparse_subtract"):
    r"""$$out = x - y$$"""


class SparseSubtractGrad(BinaryGrad, of=SparseSubtract):
    r"""$$x@GRAD = out@GRAD,\quad y@GRAD = -out@GRAD$$ where each is listed."""
