"""squared_l2_distance (Paddle 1.x): all of the op but its kernels."""

from __future__ import annotations

import math

from oprack.op import GradOp, GradOpDef, Input, OpDef, Output


class SquaredL2Distance(OpDef, type="squared_l2_distance"):
    r"""$$Out = \sum_j (X_j - Y_j)^2$$ per row; all dims but the first make up a row"""

    X = Input("Rows [N, ...].")
    Y = Input("Rows [N, ...], or one row [1, ...] for all.")
    sub_result = Output("X - Y as [N, row size].", intermediate=True)
    Out = Output("Squared distances [N, 1], LoD of X.")

    def infer_shape(ctx):
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

    def make_grad(fwd):
        return GradOp(
            "squared_l2_distance_grad",
            X=fwd.input("X"),
            Y=fwd.input("Y"),
            sub_result=fwd.output("sub_result"),
            Out_grad=fwd.output_grad("Out"),
            X_grad=fwd.input_grad("X"),
            Y_grad=fwd.input_grad("Y"),
            attrs=fwd.attrs,
        )


class SquaredL2DistanceGrad(GradOpDef, type="squared_l2_distance_grad"):
    r"""$$X@GRAD = 2 Out@GRAD \cdot sub\_result$$ and $$Y@GRAD = -X@GRAD$$, summed when Y is one row"""

    X = Input("Only its shape is read.")
    Y = Input("Only its shape is read.")
    sub_result = Input("X - Y.")
    Out_grad = Input("Gradient of Out.")
    X_grad = Output("Gradient of X, shape of X.")
    Y_grad = Output("Gradient of Y, shape of Y.")
    no_need_buffer_vars = ("X", "Y")

    def infer_shape(ctx):
        for slot in ("X", "Y"):
            ctx.set_dim(slot + "@GRAD", ctx.dim(slot))
            ctx.share_lod(slot, slot + "@GRAD")
