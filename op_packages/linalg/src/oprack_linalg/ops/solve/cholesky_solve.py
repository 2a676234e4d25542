"""cholesky_solve and its gradient."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output

from oprack_linalg.ops.solve._family import solution_dims


class CholeskySolve(OpDef, type="cholesky_solve"):
    r"""$$L L^T\,Out = X$$ where the triangle $L$ is Y, or $L^T$ is with `upper`; batch dims broadcast."""

    X = Input("[..., N, K].")
    Y = Input("[..., N, N]: Out of cholesky; the other triangle is not read.")
    Out = Output("[..., N, K]; no LoD.")
    upper = Attr(False, "Y is an upper triangle.")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", solution_dims(ctx, "Y", "X"))


class CholeskySolveGrad(GradOpDef, of=CholeskySolve, reads="X Y Out", shape_of="X"):
    r"""$$X@GRAD = (L L^T)^{-1} Out@GRAD,\quad L@GRAD = \operatorname{tril}((A + A^T) L),\quad A = -X@GRAD\,Out^T$$

    summed over batch dims that were broadcast; with `upper`, Y@GRAD is the transpose of L@GRAD.
    """
