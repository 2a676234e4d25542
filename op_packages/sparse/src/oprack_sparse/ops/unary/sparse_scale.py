"""sparse_scale: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, ForwardOp, GradOp
from oprack.types import AttrType

from oprack_sparse.ops.unary._family import Unary


class SparseScale(Unary, type="sparse_scale"):
    r"""$$out = scale \cdot x + bias$$ where x lists, or $$scale \cdot (x + bias)$$ without bias_after_scale."""

    scale = Attr(REQUIRED, "Factor.", type=AttrType.FLOAT)
    bias = Attr(REQUIRED, "Shift; what is not listed stays zero.", type=AttrType.FLOAT)
    bias_after_scale = Attr(REQUIRED, "Add the bias after scaling.", type=AttrType.BOOLEAN)

    def make_grad(fwd: ForwardOp) -> GradOp:
        attrs = fwd.attrs | {"bias": 0.0}
        return GradOp("sparse_scale", x=fwd.output_grad("out"), out=fwd.input_grad("x"), attrs=attrs)
