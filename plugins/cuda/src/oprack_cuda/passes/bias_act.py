"""A bias and the activation after it become one op, which reads and writes the array once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oprack.ir import Match, OpNode, PatternBuilder, fusion

from oprack_cuda.ops.bias_act import ACTIVATIONS


def _is_bias(op: OpNode) -> bool:
    """Whether Y is a parameter with one number for each element along one dim of X."""
    x, y = op.input("X"), op.input("Y")
    if x.shape is None or y.shape is None or not y.shape:
        return False
    axis = _axis(op)
    wide = [n for n in y.shape if n != 1]
    return axis is not None and len(wide) == 1 and x.shape[axis] == wide[0]


def _axis(op: OpNode) -> int | None:
    """The dim of X that the only wide dim of Y lies along; None when there is no such dim."""
    x, y = op.input("X").shape, op.input("Y").shape
    first = op.attr("axis", -1)
    first = len(x) - len(y) if first == -1 else first
    wide = [i for i, n in enumerate(y) if n != 1]
    at = first + wide[0] if wide else -1
    return at if 0 <= at < len(x) else None


@fusion("cuda_fuse_bias_act")
def fuse_bias_act(p: PatternBuilder) -> tuple[Any, Callable[..., Any]]:
    total = p.op("elementwise_add", X="x", Y=p.param("bias"), where=_is_bias)
    root = p.op(tuple(ACTIVATIONS), X=total)

    def build(m: Match):
        act = m.op_of(root)
        numbers = [float(m.attr(act, name)) for name in ACTIVATIONS[act.type]]
        attrs = {"axis": _axis(m.op_of(total)), "act": act.type, "numbers": numbers}
        return m.op("cuda_bias_act", X=m["x"], Bias=m["bias"], attrs=attrs)

    return root, build
