"""partial_allgather: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, Input, OpDef, Output, empty_grad
from oprack.types import AttrType

from oprack_collective.ops._attrs import RING_ID, USE_CALC_STREAM


class PartialAllgather(OpDef, type="partial_allgather"):
    r"""$$Out.flat = [X_0.flat_0, X_1.flat_1, \dots]$$

    Each rank of the ring has its part of X.flat, all of one size; Out has all of them.
    """

    X = Input("Tensor of rank 1 or more.")
    Out = Output("No LoD.")
    ring_id = RING_ID
    use_calc_stream = USE_CALC_STREAM
    nranks = Attr(REQUIRED, "Number of ranks of the ring.", type=AttrType.INT)
    rank = Attr(REQUIRED, "This rank in the ring.", type=AttrType.INT)
    inplace = {"X": "Out"}
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", ctx.dim("X"))
