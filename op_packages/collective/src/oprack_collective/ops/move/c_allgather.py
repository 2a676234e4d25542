"""c_allgather: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, Input, OpDef, Output, empty_grad
from oprack.types import AttrType

from oprack_collective.ops._attrs import RING_ID, USE_CALC_STREAM


class CAllgather(OpDef, type="c_allgather"):
    r"""$$Out = [X_0, X_1, \dots]$$: the rows of all ranks of the ring, one after the other."""

    X = Input("Tensor of rank 1 or more.")
    Out = Output("No LoD.")
    ring_id = RING_ID
    use_calc_stream = USE_CALC_STREAM
    nranks = Attr(REQUIRED, "Number of ranks of the ring.", type=AttrType.INT)
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.dim("X")
        rows = dims[0] * ctx.attr("nranks") if dims and dims[0] >= 0 else -1
        ctx.set_dim("Out", (rows, *dims[1:]))
