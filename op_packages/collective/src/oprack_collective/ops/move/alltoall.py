"""alltoall: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import InferShapeContext, Input, OpDef, Output, empty_grad

from oprack_collective.ops._attrs import RING_ID, USE_CALC_STREAM


class Alltoall(OpDef, type="alltoall"):
    r"""$$Out = [X_{0, rank}, X_{1, rank}, \dots]$$

    The rows are cut into a part for each rank of the ring, and the parts that all ranks have for this one are joined.
    """

    X = Input("Tensor of rank 1 or more.")
    Out = Output("No LoD.")
    ring_id = RING_ID
    use_calc_stream = USE_CALC_STREAM
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require(bool(ctx.dim("X")), "X is 0-D; expected rows, a part of them for each rank")
        ctx.set_dim("Out", ctx.dim("X"))
