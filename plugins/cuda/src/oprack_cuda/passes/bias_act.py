"""A bias and the activation after it become one op, which reads and writes the array once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oprack.ir import Match, NewVar, OpNode, PatternBuilder, fusion

from oprack_cuda.ops.bias_act import ACTIVATIONS


def _axis(op: OpNode) -> int | None:
    """The dim of X that Y has one number for each element along; None where Y is no such bias."""
    x, y = op.input("X"), op.input("Y")
    if x is None or y is None or x.shape is None or not y.shape:
        return None
    first = op.attr("axis", -1)
    first = len(x.shape) - len(y.shape) if first == -1 else first
    wide = [i for i, n in enumerate(y.shape) if n != 1]
    if len(wide) != 1:
        return None
    at: int = first + wide[0]
    return at if 0 <= at < len(x.shape) and x.shape[at] == y.shape[wide[0]] else None


@fusion("cuda_fuse_bias_act")
def fuse_bias_act(p: PatternBuilder) -> tuple[Any, Callable[..., Any]]:
    total = p.op("elementwise_add", X="x", Y=p.param("bias"), where=lambda op: _axis(op) is not None)
    root = p.op(tuple(ACTIVATIONS), X=total)

    def build(m: Match) -> NewVar:
        act = m.op_of(root)
        numbers = [float(m.attr(act, name)) for name in ACTIVATIONS[act.type]]
        attrs = {"axis": _axis(m.op_of(total)), "act": act.type, "numbers": numbers}
        return m.op("cuda_bias_act", X=m["x"], Bias=m["bias"], attrs=attrs)

    return root, build
