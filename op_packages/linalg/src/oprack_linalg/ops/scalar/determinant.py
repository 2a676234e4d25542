"""determinant and its gradient."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.sbp import leading

from oprack_linalg.ops._shapes import square_dims


class Determinant(OpDef, type="determinant"):
    r"""$$Out = \det(Input)$$"""

    Input_ = Input("[..., N, N].", name="Input")
    Out = Output("[...]; no LoD.")
    sbp = leading(("Input",), ("Out",), lambda ctx: len(ctx.dim("Input")) - 2)

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", square_dims(ctx, "Input")[:-2])


class DeterminantGrad(GradOpDef, of=Determinant, reads="Input Out"):
    r"""$$Input@GRAD = Out@GRAD \cdot \operatorname{adj}(Input)^T$$

    The adjugate is $Out \cdot Input^{-1}$ where that exists, and is there for singular matrices as well.
    """
