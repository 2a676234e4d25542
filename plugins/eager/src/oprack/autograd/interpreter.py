"""AutogradInterpreter: records calls and the values that their gradients need."""

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
    """Wraps another interpreter: eager calls are recorded; for appended ops, the program itself is the record.

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
            return self.inner.apply(expr, args, _backward_rule)
        return self.inner.apply(expr, args)


def _backward_rule(bound: BoundExpr, metas: Key) -> BackwardRule | None:
    """The rule for the gradients of the arguments that require them; None when the call need not be recorded."""
    wrt = [i for i, k in enumerate(metas) if k is not None and k.grad]
    if not wrt:
        return None
    visible, k = [], 0
    # A gradient can arrive only at outputs that the caller receives as tensors, so not at intermediate ones.
    for slot, flags in bound.expr.outputs:
        if slot in bound.expr.returned:
            visible += [k + i for i, w in enumerate(flags) if w]
        k += len(flags)
    rule = BackwardRule(bound, wrt, visible)
    return None if rule.empty else rule


register_interpreter("autograd", AutogradInterpreter)
