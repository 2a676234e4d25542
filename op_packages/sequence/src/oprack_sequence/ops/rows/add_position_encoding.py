"""add_position_encoding: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.sbp import leading

from oprack_sequence.ops._infer import same_as


class AddPositionEncoding(OpDef, type="add_position_encoding"):
    r"""$$Out = \alpha X + \beta P$$ with the sinusoids of a row's position t in its sequence:

    $P_{t,k} = \sin(t / 10000^{k / (h - 1)})$ and $P_{t,k+h} = \cos(t / 10000^{k / (h - 1)})$ for k < h = D / 2
    (for D = 2 the angle is t / 10000).
    """

    X = Input("[B, T, D], or [N, D] with LoD; D is even.")
    Out = Output("Shape and LoD of X.")
    alpha = Attr(1.0, "Factor of X.")
    beta = Attr(1.0, "Factor of the sinusoids.")
    sbp = leading(("X",), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        dim = ctx.require_rank("X", 2, 3)
        if len(dim) == 2:
            ctx.require_lod("X")
        ctx.require(dim[-1] < 0 or dim[-1] % 2 == 0, f"X has {dim[-1]} columns; expected an even number")
        same_as(ctx, "X", "Out")


class AddPositionEncodingGrad(GradOpDef, of=AddPositionEncoding, like="Out@GRAD"):
    """alpha times the gradient."""
