"""addmm and its gradient."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.families import USE_MKLDNN
from oprack.op.sbp import SbpContext, Signature, factors

from oprack_math.ops._broadcast import broadcast_dims
from oprack_math.ops.matmul._family import product_dims


class Addmm(OpDef, type="addmm"):
    r"""$$Out = Beta \cdot Input + Alpha \cdot X Y$$"""

    Input_ = Input("[n, m], [m], or ones in place of these.")
    X = Input("[n, k]")
    Y = Input("[k, m]")
    Out = Output("[n, m]; LoD of Input.")
    Beta = Attr(1.0, "Factor of Input.")
    Alpha = Attr(1.0, "Factor of the product.")
    use_mkldnn = USE_MKLDNN
    inplace = {"Input": "Out"}

    def sbp(ctx: SbpContext) -> list[Signature]:
        if len(ctx.dim("Input")) != 2 or ctx.dim("Input") != ctx.dim("Out"):
            return []
        return factors({"Input": "m n", "X": "m k", "Y": "k n"}, {"Out": "m n"}, no=["k"])

    def infer_shape(ctx: InferShapeContext) -> None:
        product = product_dims(ctx, ctx.require_rank("X", 2), ctx.require_rank("Y", 2), False, False)
        given = ctx.require_rank("Input", 1, 2)
        fits = all(-1 in (a, b) or a in (1, b) for a, b in zip(given, product[-len(given) :], strict=True))
        ctx.require(fits, f"Input has shape {list(given)}; expected one that broadcasts to {list(product)}")
        ctx.set_dim("Out", broadcast_dims(given, product, -1, ctx.op_type))
        ctx.share_lod("Input", "Out")


class AddmmGrad(GradOpDef, of=Addmm, reads="Input X Y"):
    r"""$$Input@GRAD = Beta \cdot Out@GRAD,\quad X@GRAD = Alpha \cdot Out@GRAD\,Y^T,\quad
    Y@GRAD = Alpha \cdot X^T Out@GRAD$$"""
