"""sparse_leaky_relu and its gradient."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr
from oprack.types import AttrType

from oprack_sparse.ops.unary._family import GradFromX, Unary


class SparseLeakyRelu(Unary, type="sparse_leaky_relu"):
    r"""$$out = x$$ where $$x > 0$$, else $$alpha \cdot x$$ of the listed elements."""

    alpha = Attr(REQUIRED, "Slope of the negative side.", type=AttrType.FLOAT)


class SparseLeakyReluGrad(GradFromX, of=SparseLeakyRelu):
    r"""$$x@GRAD = out@GRAD$$ where $$x > 0$$, else $$alpha \cdot out@GRAD$$ of the elements that x lists."""
