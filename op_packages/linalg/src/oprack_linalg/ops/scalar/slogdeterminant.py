"""slogdeterminant and its gradient."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output

from oprack_linalg.ops._shapes import square_dims


class Slogdeterminant(OpDef, type="slogdeterminant"):
    r"""$$Out_0 = \operatorname{sign} \det(Input),\quad Out_1 = \ln |\det(Input)|$$"""

    Input_ = Input("[..., N, N].", name="Input")
    Out = Output("[2, ...]: the signs, then the logarithms; 0 and minus infinity of a singular matrix; no LoD.")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", (2, *square_dims(ctx, "Input")[:-2]))


class SlogdeterminantGrad(GradOpDef, of=Slogdeterminant, reads="Input Out", shape_of="Out"):
    r"""$$Input@GRAD = Out@GRAD_1 \cdot Input^{-T}$$ The sign has no gradient."""
