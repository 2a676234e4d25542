"""fill_diagonal and its gradient."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext

from oprack_tensor.ops.diagonal._family import OFFSET, FillsDiagonal, FillsDiagonalGrad


class FillDiagonal(FillsDiagonal, type="fill_diagonal"):
    r"""$$Out_{i, \dots, i, i + offset} = value$$ and X elsewhere. With wrap the diagonal of a matrix with more rows
    than columns begins anew below, one row further down."""

    value = Attr(0.0, "What to fill in.")
    offset = OFFSET
    wrap = Attr(False, "Begin anew below the square part of a tall matrix.")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.dim("X")
        ctx.require(len(dims) >= 2, f"X has shape {list(dims)}; expected rank 2 or more")
        equal = len({d for d in dims if d >= 0}) <= 1
        ctx.require(
            len(dims) == 2 or equal, f"X has shape {list(dims)}; expected equal dims where there are more than 2"
        )
        ctx.set_dim("Out", dims)
        ctx.share_lod("X", "Out")


class FillDiagonalGrad(FillsDiagonalGrad, of=FillDiagonal):
    """X@GRAD is Out@GRAD with zeros at the places that were filled."""
