"""squared_l2_distance (Paddle 1.x): all of the op but its kernels."""

from __future__ import annotations

import math

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.sbp import leading


class SquaredL2Distance(OpDef, type="squared_l2_distance"):
    r"""$$Out = \sum_j (X_j - Y_j)^2$$ per row; all dims but the first make up a row"""

    X = Input("Rows [N, ...].")
    Y = Input("Rows [N, ...], or one row [1, ...] for all.")
    sub_result = Output("X - Y as [N, row size].", intermediate=True)
    Out = Output("Squared distances [N, 1], LoD of X.")
    sbp = leading(("X", "Y"), ("sub_result", "Out"))

    def infer_shape(ctx: InferShapeContext) -> None:
        x, y = ctx.dim("X"), ctx.dim("Y")
        size, other = (-1 if -1 in d[1:] else math.prod(d[1:]) for d in (x, y))
        ctx.require(
            len(x) >= 2 and len(x) == len(y) and (size == other or -1 in (size, other)),
            f"X has shape {list(x)} and Y {list(y)}; expected rows of equal size",
        )
        ctx.require(y[0] in (x[0], 1, -1) or x[0] < 0, f"Y has {y[0]} rows; expected 1 or {x[0]}, the rows of X")
        ctx.set_dim("sub_result", (x[0], size))
        ctx.set_dim("Out", (x[0], 1))
        ctx.share_lod("X", "Out")


class SquaredL2DistanceGrad(GradOpDef, of=SquaredL2Distance, reads="sub_result", shape_of="X Y"):
    r"""$$X@GRAD = 2 Out@GRAD \cdot sub\_result$$ and $$Y@GRAD = -X@GRAD$$, summed when Y is one row"""
