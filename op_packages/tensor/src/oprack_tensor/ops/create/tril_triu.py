"""tril_triu: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.sbp import leading


class TrilTriu(OpDef, type="tril_triu"):
    r"""$$Out_{\ldots, i, j} = X_{\ldots, i, j} \cdot [j - i \le diagonal]$$ with `lower`, else
    $$[j - i \ge diagonal]$$.
    """

    X = Input("[..., n, m]")
    Out = Output("Shape and LoD of X.")
    diagonal = Attr(0, "Which diagonal: 0 the main one, positive above it.")
    lower = Attr(False, "Keep the lower part instead of the upper one.")
    sbp = leading(("X",), ("Out",), lambda ctx: len(ctx.dim("X")) - 2)

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.dim("X")
        ctx.require(len(dims) >= 2, f"X has shape {list(dims)}; expected rank 2 or more")
        ctx.set_dim("Out", dims)
        ctx.share_lod("X", "Out")


class TrilTriuGrad(GradOpDef, of=TrilTriu, like="Out@GRAD", linear=True):
    """X@GRAD is Out@GRAD with the same part set to 0."""
