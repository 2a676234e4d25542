"""qr and its gradient."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.sbp import leading

from oprack_linalg.ops._shapes import matrix_dims, smaller


class Qr(OpDef, type="qr"):
    r"""$$X = Q R$$ where $Q$ has orthonormal columns and $R$ is an upper triangle."""

    X = Input("[..., M, N].")
    Q = Output("[..., M, K] with K = min(M, N), or M when `mode` is complete; [0] when it is r.")
    R = Output("[..., K, N].")
    mode = Attr("reduced", "reduced, complete (Q is square), or r (no Q).").in_set({"reduced", "complete", "r"})
    sbp = leading(("X",), ("Q", "R"), lambda ctx: len(ctx.dim("X")) - 2)

    def infer_shape(ctx: InferShapeContext) -> None:
        *batch, rows, columns = matrix_dims(ctx, "X")
        inner = rows if ctx.attr("mode") == "complete" else smaller(rows, columns)
        ctx.set_dim("Q", (0,) if ctx.attr("mode") == "r" else (*batch, rows, inner))
        ctx.set_dim("R", (*batch, inner, columns))


class QrGrad(GradOpDef, of=Qr, reads="X Q R"):
    r"""$$X@GRAD = (Q@GRAD + Q \operatorname{sym}(M)) R^{-T},\quad M = R\,R@GRAD^T - Q@GRAD^T Q$$

    sym(M) is the lower triangle of M, mirrored. Of an X with more columns than rows this is the gradient of the square
    part $X_1 = Q R_1$; the other columns $X_2 = Q R_2$ get $Q\,R_2@GRAD$ and add $X_2 R_2@GRAD^T$ to Q@GRAD.
    """

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, mode = matrix_dims(ctx, "X"), ctx.attr("mode")
        tall = -1 not in dims[-2:] and dims[-2] > dims[-1]
        ctx.require(
            mode == "reduced" or (mode == "complete" and not tall),
            f"mode is {mode!r} and X has shape {list(dims)}; expected mode 'reduced', since without all of Q, or with "
            "columns of Q that X does not determine, there is no gradient",
        )
        ctx.set_dim("X@GRAD", dims)
        ctx.share_lod("X", "X@GRAD")
