"""sparse_divide and its gradient."""

from __future__ import annotations

from oprack_sparse.ops.elementwise._family import Binary, BinaryGrad


class SparseDivide(Binary, type="sparse_divide"):
    r"""$$out = x / y$$ of all elements, each of which is listed, since 0/0 is NaN."""


class SparseDivideGrad(BinaryGrad, of=SparseDivide):
    r"""$$x@GRAD = out@GRAD / y,\quad y@GRAD = -out@GRAD \cdot x / y^2$$ where each is listed."""
