"""AutogradInterpreter: calls are recorded, with what their gradients will need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oprack.autograd.backward_rule import BackwardRule
from oprack.interpreter.base import Interpreter
from oprack.interpreter.bound_expr import BoundExpr
from oprack.interpreter.eager import EagerInterpreter, Key
from oprack.interpreter.modes import register_interpreter
from oprack.interpreter.op_expr import OpExpr


class AutogradInterpreter:
    """Around another interpreter: eager calls are recorded, appended ones pass on which variables stop gradients.

    Args:
        inner: The interpreter that applies calls.
    """

    def __init__(self, inner: Interpreter) -> None:
        self.inner = inner

    def apply(self, expr: OpExpr, args: Sequence[Any]) -> Any:
        """Let the inner interpreter apply a call, and record it where a gradient is wanted.

        Args:
            expr: The op.
            args: Its tensors, None for absent ones.

        Returns:
            What the inner interpreter gives.
        """
        if isinstance(self.inner, EagerInterpreter):
            return self.inner.apply(expr, args, _plan)
        return self.inner.apply(expr, args)


def _plan(bound: BoundExpr, metas: Key) -> BackwardRule | None:
    """How the gradients of the arguments that want them are computed; None when nothing is recorded."""
    wrt = [i for i, k in enumerate(metas) if k is not None and k.grad]
    if not wrt:
        return None
    visible, k = [], 0
    # Intermediate outputs have no tensor that a gradient could arrive at.
    for slot, wanted in bound.expr.outputs:
        if slot in bound.expr.returned:
            visible += [k + i for i, w in enumerate(wanted) if w]
        k += len(wanted)
    rule = BackwardRule(bound, wrt, visible)
    return None if rule.empty else rule


register_interpreter("autograd", AutogradInterpreter)
