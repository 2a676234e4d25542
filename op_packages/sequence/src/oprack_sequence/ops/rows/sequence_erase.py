"""sequence_erase: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, Input, OpDef, Output, empty_grad
from oprack.op.sbp import sequences
from oprack.types import AttrType


class SequenceErase(OpDef, type="sequence_erase"):
    r"""$$Out^{(i)} = (x \in X^{(i)} : x \notin tokens)$$: sequences get shorter, their number stays."""

    X = Input("Ids [N, 1] with LoD; the innermost level gets shorter.")
    Out = Output("Ids [rows left, 1] with LoD.")
    tokens = Attr(REQUIRED, "Ids to drop.", type=AttrType.INTS)
    make_grad = empty_grad
    sbp = sequences(("X",), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_lod("X")
        ctx.set_dim("Out", (-1, *ctx.dim("X")[1:]))
        ctx.set_lod_level("Out", max(ctx.lod_level("X"), 1))
