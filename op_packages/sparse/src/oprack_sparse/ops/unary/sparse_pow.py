"""sparse_pow and its gradient."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr
from oprack.types import AttrType

from oprack_sparse.ops.unary._family import GradFromX, Unary


class SparsePow(Unary, type="sparse_pow"):
    r"""$$out = x^{factor}$$ of the listed elements."""

    factor = Attr(REQUIRED, "The exponent.", type=AttrType.FLOAT)


class SparsePowGrad(GradFromX, of=SparsePow):
    r"""$$x@GRAD = out@GRAD \cdot factor \cdot x^{factor-1}$$ of the elements that x lists."""
