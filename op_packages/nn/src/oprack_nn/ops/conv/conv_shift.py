"""conv_shift (Paddle 1.x) and its gradient: all of the ops but their kernels."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output


class ConvShift(OpDef, type="conv_shift"):
    r"""$$Out_{b,i} = \sum_{j=-h}^{h} X_{b, (i + j) \bmod M} Y_{b, j + h}$$ with h = (N - 1) / 2

    Each row is convolved around a circle with a filter of its own, as neural Turing machines shift their attention.
    """

    X = Input("[B, M].")
    Y = Input("Filters [B, N]; N is odd and at most M.")
    Out = Output("[B, M], LoD of X.")

    def infer_shape(ctx: InferShapeContext) -> None:
        x, y = ctx.require_rank("X", 2), ctx.require_rank("Y", 2)
        ctx.require_dims("Y", (x[0], -1), why="a filter for each row of X")
        ctx.require(
            y[1] < 0 or (y[1] % 2 == 1 and (x[1] < 0 or y[1] <= x[1])),
            f"Y has shape {list(y)}; expected an odd number of columns, at most {x[1]}, those of X",
        )
        ctx.set_dim("Out", x)
        ctx.share_lod("X", "Out")


class ConvShiftGrad(GradOpDef, of=ConvShift, reads="X Y"):
    r"""$$X@GRAD_{b,(i+j) \bmod M} = \sum_j Out@GRAD_{b,i} Y_{b,j+h}$$ and $$Y@GRAD_{b,j+h} = \sum_i Out@GRAD_{b,i}
    X_{b,(i+j) \bmod M}$$"""
