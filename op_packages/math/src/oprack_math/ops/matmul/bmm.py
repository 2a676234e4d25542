"""bmm and its gradient."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.sbp import SbpContext, Signature, factors, product_names

from oprack_math.ops.matmul._family import product_dims


class Bmm(OpDef, type="bmm"):
    r"""$$Out_b = X_b Y_b$$"""

    X = Input("[B, M, K].")
    Y = Input("[B, K, N].")
    Out = Output("[B, M, N], LoD of X.")

    def sbp(ctx: SbpContext) -> list[Signature]:
        x, y, out = product_names(ctx.dim("X"), ctx.dim("Y"), ctx.dim("Out"), False, False)
        return factors({"X": x, "Y": y}, {"Out": out}, linear=(("X",), ("Y",)))

    def infer_shape(ctx: InferShapeContext) -> None:
        x, y = ctx.require_rank("X", 3), ctx.require_rank("Y", 3)
        ctx.require(
            x[0] == y[0] or -1 in (x[0], y[0]),
            f"X has shape {list(x)} and Y {list(y)}; expected equal first dims, the batch",
        )
        ctx.set_dim("Out", product_dims(ctx, x, y, False, False))
        ctx.share_lod("X", "Out")


class BmmGrad(GradOpDef, of=Bmm, reads="X Y"):
    r"""$$X@GRAD_b = Out@GRAD_b\, Y_b^T,\quad Y@GRAD_b = X_b^T Out@GRAD_b$$"""
