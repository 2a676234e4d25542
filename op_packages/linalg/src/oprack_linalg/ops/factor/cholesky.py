"""cholesky and its gradient."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.sbp import leading

from oprack_linalg.ops._shapes import square_dims


class Cholesky(OpDef, type="cholesky"):
    r"""$$X = L L^T$$ with Out = $L$, a lower triangle, or Out = $L^T$ with `upper`.

    X is taken for symmetric: its lower triangle is read, with `upper` its upper one.
    """

    X = Input("[..., N, N], symmetric and positive definite.")
    Out = Output("Shape of X, zero beside its triangle; no LoD.")
    upper = Attr(False, "Give the upper triangle.")
    sbp = leading(("X",), ("Out",), lambda ctx: len(ctx.dim("X")) - 2)

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", square_dims(ctx, "X"))


class CholeskyGrad(GradOpDef, of=Cholesky, reads="Out", like="Out"):
    r"""The symmetric matrix $$X@GRAD = \tfrac12 L^{-T} (\Phi + \Phi^T) L^{-1}$$

    $\Phi$ is the lower triangle of $L^T L@GRAD$ with half of its diagonal.
    """
