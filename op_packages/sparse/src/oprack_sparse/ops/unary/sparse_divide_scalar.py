"""sparse_divide_scalar: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, ForwardOp, GradOp
from oprack.types import AttrType

from oprack_sparse.ops.unary._family import Unary


class SparseDivideScalar(Unary, type="sparse_divide_scalar"):
    r"""$$out = x / scalar$$"""

    scalar = Attr(REQUIRED, "The divisor.", type=AttrType.FLOAT)

    def make_grad(fwd: ForwardOp) -> GradOp:
        return GradOp("sparse_divide_scalar", x=fwd.output_grad("out"), out=fwd.input_grad("x"), attrs=fwd.attrs)
