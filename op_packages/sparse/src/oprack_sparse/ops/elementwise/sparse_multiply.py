"""sparse_multiply and its gradient."""

from __future__ import annotations

from oprack_sparse.ops.elementwise._family import Binary, BinaryGrad


class SparseMultiply(Binary, type="sparse_multiply"):
    r"""$$out = x \cdot y$$"""


class SparseMultiplyGrad(BinaryGrad, of=SparseMultiply):
    r"""$$x@GRAD = out@GRAD \cdot y,\quad y@GRAD = out@GRAD \cdot x$$ where each is listed."""
