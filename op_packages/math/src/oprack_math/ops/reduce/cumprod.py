"""cumprod and its gradient."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.sbp import all_but
from oprack.types import AttrType


class Cumprod(OpDef, type="cumprod"):
    r"""$$Out_i = \prod_{j \le i} X_j$$"""

    X = Input("Tensor of any shape.")
    Out = Output("Shape and LoD of X.")
    dim = Attr(REQUIRED, "Dim along which to multiply; negative counts from the end.", type=AttrType.INT)
    inplace = {"X": "Out"}
    sbp = all_but("dim")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.axis("X", "dim")
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")


class CumprodGrad(GradOpDef, of=Cumprod, reads="X Out"):
    r"""$$X@GRAD_j = \sum_{i \ge j} Out@GRAD_i \prod_{k \le i, k \ne j} X_k$$ also where X holds zeros."""
