"""partial_send: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, Input, OpDef, empty_grad

from oprack_collective.ops._attrs import PEER, RING_ID, USE_CALC_STREAM


class PartialSend(OpDef, type="partial_send"):
    r"""$$Out_{peer}.flat_{id} = X.flat_{id}$$: part `id` of `num` equal ones of X.flat is sent to the rank `peer`."""

    X = Input("Tensor of any shape.")
    ring_id = RING_ID
    peer = PEER
    use_calc_stream = USE_CALC_STREAM
    num = Attr(1, "Number of parts.").at_least(1)
    id = Attr(0, "Which part, from 0.").at_least(0)
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        """There is no output."""
