"""What follows the main step of a fused op: with the kernels of the ops that it stands for, or as post-ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oprack.packs.manager import default_manager

from oprack_onednn import _c
from oprack_onednn.native import Attributes
from oprack_onednn.ops.post_ops import RESIDUAL, algorithm, attributes


class OpContext:
    """What the kernels of this library read of a KernelContext, for an op that stands in no program."""

    def __init__(self, op_type: str, attrs: dict[str, Any]) -> None:
        self.op_type, self.attrs = op_type, attrs

    @classmethod
    def of(cls, op_type: str, **attrs: Any) -> OpContext:
        """With the defaults of the op."""
        proto = default_manager().op_info(op_type).proto
        return cls(op_type, {a.name: a.default for a in proto.attrs.values()} | attrs)


Run = Callable[[str, dict[str, Any], OpContext], Any]
"""run(op type, arrays by parameter, context): computes one step; served.run_served or served.run_plain."""


def after(y: Any, axis: int, bias: Any, residual: Any, post_ops: list[str], run: Run) -> Any:
    """What follows the main step: the bias along an axis, and the post-ops."""
    if bias is not None:
        y = run("elementwise_add", {"X": y, "Y": bias}, OpContext.of("elementwise_add", axis=axis))
    for text in post_ops:
        if text == RESIDUAL:
            y = run("elementwise_add", {"X": y, "Y": residual}, OpContext.of("elementwise_add", axis=-1))
        else:
            op_type, attrs = attributes(text)
            y = run(op_type, {"X": y}, OpContext.of(op_type, **attrs))
    return y


def as_post_ops(post_ops, residual=None, first=()):
    """(attributes of the primitive, index of the residual among the post-ops or None). first: what comes before."""
    parts, at = list(first), None
    for text in post_ops:
        if text == RESIDUAL:
            at = len(parts)
            parts.append(("binary", _c.BINARY_ADD, residual))
        else:
            name, alpha, beta = algorithm(text)
            parts.append(("eltwise", _c.ELTWISE[name], alpha, beta))
    return Attributes(parts), at
