"""cos_sim (Paddle 1.x): all of the op but its kernels."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output


class CosSim(OpDef, type="cos_sim"):
    r"""$$Out = \frac{X \cdot Y}{\|X\| \|Y\|}$$ per row; all dims but the first make up a row"""

    X = Input("Rows [N, ...].")
    Y = Input("Rows [N, ...], or one row [1, ...] for all.")
    Out = Output("Cosines [N, 1], LoD of X.")
    XNorm = Output("Norms of X [N, 1].", intermediate=True)
    YNorm = Output("Norms of Y [N or 1, 1].", intermediate=True)

    def infer_shape(ctx: InferShapeContext) -> None:
        x, y = ctx.dim("X"), ctx.dim("Y")
        fits = len(x) == len(y) >= 2 and all(a == b or -1 in (a, b) for a, b in zip(x[1:], y[1:], strict=True))
        ctx.require(fits, f"X has shape {list(x)} and Y {list(y)}; expected equal shapes but for the first dim")
        ctx.require(y[0] in (x[0], 1, -1) or x[0] < 0, f"Y has {y[0]} rows; expected 1 or {x[0]}, the rows of X")
        ctx.set_dim("Out", (x[0], 1))
        ctx.set_dim("XNorm", (x[0], 1))
        ctx.set_dim("YNorm", (y[0], 1))
        ctx.share_lod("X", "Out")


class CosSimGrad(GradOpDef, of=CosSim, reads="X Y XNorm YNorm Out Out@GRAD"):
    r"""$$X@GRAD = Out@GRAD (\frac{Y}{\|X\| \|Y\|} - Out \frac{X}{\|X\|^2})$$, and the same for Y"""
