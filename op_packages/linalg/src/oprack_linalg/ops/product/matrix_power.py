"""matrix_power and its gradient."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.sbp import leading
from oprack.types import AttrType

from oprack_linalg.ops._shapes import square_dims


class MatrixPower(OpDef, type="matrix_power"):
    r"""$$Out = X^n$$"""

    X = Input("[..., N, N]; not singular where n is negative.")
    Out = Output("Shape of X; no LoD.")
    n = Attr(REQUIRED, "The exponent, which may be negative or zero.", type=AttrType.INT)
    sbp = leading(("X",), ("Out",), lambda ctx: len(ctx.dim("X")) - 2)

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", square_dims(ctx, "X"))


class MatrixPowerGrad(GradOpDef, of=MatrixPower, reads="X Out"):
    r"""$$X@GRAD = \sum_{i=0}^{n-1} (X^T)^i\,Out@GRAD\,(X^T)^{n-1-i}$$

    For negative n it is $-Y^T\,Y@GRAD\,Y^T$, where $Y = X^{-1}$ and $Out = Y^{-n}$.
    """
