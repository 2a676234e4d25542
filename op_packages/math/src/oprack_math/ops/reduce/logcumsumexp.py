"""logcumsumexp and its gradient."""

from __future__ import annotations

from oprack.op import GradOpDef
from oprack.op.sbp import SbpContext, Signature, all_but

from oprack_math.ops.reduce._cumulative import Cumulative


class Logcumsumexp(Cumulative, type="logcumsumexp"):
    r"""$$Out_i = \ln \sum_{j \le i} e^{X_j}$$ With exclusive, the first result is the lowest number of the dtype."""

    def sbp(ctx: SbpContext) -> list[Signature]:
        return [] if ctx.attr("flatten") else all_but("axis")(ctx)


class LogcumsumexpGrad(GradOpDef, of=Logcumsumexp, reads="X Out"):
    r"""$$X@GRAD_j = \sum_{i \ge j} Out@GRAD_i\, e^{X_j - Out_i}$$"""
