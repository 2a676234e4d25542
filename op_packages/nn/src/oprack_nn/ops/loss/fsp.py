"""fsp and its gradient: all of the ops but their kernels."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.sbp import leading


def _output_dims(ctx: InferShapeContext) -> tuple[int, int, int]:
    x, y = ctx.require_rank("X", 4), ctx.require_rank("Y", 4)
    ctx.require_dims("Y", (x[0], -1, *x[2:]), why="the images of X, with channels of their own")
    return x[0], x[1], y[1]


class Fsp(OpDef, type="fsp"):
    r"""$$Out_{n,i,j} = \frac{1}{H W} \sum_{y,x} X_{n,i,y,x} Y_{n,j,y,x}$$

    The flow between two layers of a net, which distillation compares (Yim et al., 2017).
    """

    X = Input("[N, C, H, W].")
    Y = Input("[N, D, H, W].")
    Out = Output("[N, C, D].")
    sbp = leading(("X", "Y"), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", _output_dims(ctx))
        ctx.share_lod("X", "Out")


class FspGrad(GradOpDef, of=Fsp, reads="X Y", dims={"Out@GRAD": _output_dims}):
    r"""$$X@GRAD_{n,i} = \frac{1}{H W} \sum_j Out@GRAD_{n,i,j} Y_{n,j}$$, and Y@GRAD likewise"""
