"""assert: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, Input, OpDef, dtype_of, empty_grad
from oprack.types import AttrType


class Assert(OpDef, type="assert"):
    """Stops the run with an error that shows Data when Cond is false."""

    Cond = Input("One bool.")
    Data = Input("Tensors to show.", duplicable=True)
    summarize = Attr(-1, "How many elements of each tensor to show; -1 for all.", type=AttrType.LONG)
    expected_kernel_type = dtype_of("Cond")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        """There is no output."""
