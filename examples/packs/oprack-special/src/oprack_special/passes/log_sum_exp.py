"""log(sum(exp(x))) is one op of the math pack, which does not overflow where exp does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack.ir import fusion
from oprack.types import FLOATS

if TYPE_CHECKING:
    from oprack.ir import Match, OpNode, PatternBuilder
    from oprack.ir.pattern import Pattern


def _of_floats(op: OpNode) -> bool:
    """Whether the sum has the dtype of what is summed."""
    x = op.input("X")
    return x is not None and x.dtype in FLOATS and op.attr("out_dtype", -1) == -1


@fusion("fuse_log_sum_exp")
def fuse_log_sum_exp(p: PatternBuilder) -> tuple[Pattern, object]:
    summed = p.op("reduce_sum", X=p.op("exp", X="x"), where=_of_floats)
    root = p.op("log", X=summed)

    def build(m: Match) -> object:
        attrs = {
            "axis": m.attr(summed, "dim"),
            "keepdim": m.attr(summed, "keep_dim"),
            "reduce_all": m.attr(summed, "reduce_all"),
        }
        return m.op("logsumexp", X=m["x"], attrs=attrs)

    return root, build
