"""reduce_prod and its gradient."""

from __future__ import annotations

from oprack.op.sbp import reduction

from oprack_math.ops._reduce import Reduce, ReduceGradWithOut


class ReduceProd(Reduce, type="reduce_prod"):
    r"""$$Out = \prod_{dim} X$$"""

    sbp = reduction("other")


class ReduceProdGrad(ReduceGradWithOut, of=ReduceProd):
    r"""$$X@GRAD = Out@GRAD \cdot Out / X$$ so an X of 0 gives NaN or infinity, as in Paddle."""
