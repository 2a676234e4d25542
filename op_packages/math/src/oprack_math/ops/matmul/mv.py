"""mv and its gradient."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.sbp import SbpContext, Signature, factors


class Mv(OpDef, type="mv"):
    r"""$$Out_i = \sum_j X_{i,j} Vec_j$$"""

    X = Input("[n, m]")
    Vec = Input("[m]")
    Out = Output("[n]; no LoD.")

    def sbp(ctx: SbpContext) -> list[Signature]:
        return factors({"X": "m k", "Vec": "k"}, {"Out": "m"}, linear=(("X",), ("Vec",)))

    def infer_shape(ctx: InferShapeContext) -> None:
        rows, columns = ctx.require_rank("X", 2)
        ctx.require_dims("Vec", [columns], why=f"since X has {columns} columns")
        ctx.set_dim("Out", (rows,))


class MvGrad(GradOpDef, of=Mv, reads="X Vec"):
    r"""$$X@GRAD_{i,j} = Out@GRAD_i Vec_j,\quad Vec@GRAD_j = \sum_i X_{i,j} Out@GRAD_i$$"""
