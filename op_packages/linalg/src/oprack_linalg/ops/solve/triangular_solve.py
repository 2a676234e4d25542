"""triangular_solve and its gradient."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output

from oprack_linalg.ops.solve._family import solution_dims


class TriangularSolve(OpDef, type="triangular_solve"):
    r"""$$T\,Out = Y$$ for $T$, the upper or lower triangle of X, or its transpose; batch dims broadcast."""

    X = Input("[..., N, N]; the other triangle is not read.")
    Y = Input("[..., N, K].")
    Out = Output("[..., N, K]; no LoD.")
    upper = Attr(True, "Read the upper triangle of X, or else the lower one.")
    transpose = Attr(False, "Solve with the transpose of the triangle.")
    unitriangular = Attr(False, "Take the diagonal for ones and do not read it.")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", solution_dims(ctx, "X", "Y"))


class TriangularSolveGrad(GradOpDef, of=TriangularSolve, reads="X Y Out", shape_of="Y"):
    r"""$$Y@GRAD = T^{-T} Out@GRAD,\quad T@GRAD = -Y@GRAD\,Out^T$$

    X@GRAD is the triangle of T@GRAD that was read (its transpose with `transpose`), summed over batch dims that were
    broadcast.
    """
