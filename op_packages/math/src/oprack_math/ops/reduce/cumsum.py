"""cumsum: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, OpVersion
from oprack.op.sbp import SbpContext, Signature, all_but

from oprack_math.ops.reduce._cumulative import Cumulative


class Cumsum(Cumulative, type="cumsum"):
    r"""$$Out_i = \sum_{j \le i} X_j$$"""

    axis = Attr(-1, "Dim along which to add up.", support_tensor=True)
    inplace = {"X": "Out"}
    versions = OpVersion("cumsum").checkpoint("Sums over all elements.", ("new_attr", "flatten", False))

    def sbp(ctx: SbpContext) -> list[Signature]:
        return [] if ctx.attr("flatten") else all_but("axis")(ctx)


class CumsumGrad(GradOpDef, of=Cumsum, reads="X", linear=True):
    r"""$$X@GRAD_j = \sum_{i \ge j} Out@GRAD_i$$ the sum in the other direction."""
