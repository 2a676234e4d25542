"""logsumexp and its gradient."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.sbp import SbpContext, Signature, factors, letters

from oprack_math.ops._reduce import KEEP_DIM, reduced_dims


class Logsumexp(OpDef, type="logsumexp"):
    r"""$$Out = \ln \sum_{axis} e^X$$"""

    X = Input("Tensor of any shape.")
    Out = Output("X's shape without the reduced dims; no LoD.")
    axis = Attr([0], "Dims to reduce; none means all.")
    keepdim = KEEP_DIM
    reduce_all = Attr(False, "Reduce all dims, whatever `axis` says.")

    def sbp(ctx: SbpContext) -> list[Signature]:
        names = letters(len(ctx.dim("X")))
        over = ctx.attr("axis", [])
        gone = set(range(len(names))) if ctx.attr("reduce_all") or not over else {a % len(names) for a in over}
        keep = len(ctx.dim("Out")) == len(names)
        outs = [None if k in gone else n for k, n in enumerate(names) if keep or k not in gone]
        return factors({"X": names}, {"Out": outs}, no=[n for k, n in enumerate(names) if k in gone and n is not None])

    def infer_shape(ctx: InferShapeContext) -> None:
        attrs = (ctx.attr(a) for a in ("axis", "keepdim", "reduce_all"))
        ctx.set_dim("Out", reduced_dims(ctx, ctx.dim("X"), *attrs))


class LogsumexpGrad(GradOpDef, of=Logsumexp, reads="X Out"):
    r"""$$X@GRAD = Out@GRAD \cdot e^{X - Out}$$"""
