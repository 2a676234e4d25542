"""EagerInterpreter: runs a call now, through a function generated for the kinds of its arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from oprack.interpreter.gradients import GradPlan
from oprack.interpreter.op_expr import OpExpr
from oprack.interpreter.trace import Trace
from oprack.layers.append import errors_at_user_line

if TYPE_CHECKING:
    from oprack.interpreter.tensor import Tensor

Key = tuple[Any, ...]


def kinds_of(args: Sequence[Tensor | None]) -> Key:
    """Kinds of arguments, None for an absent one."""
    return tuple([None if a is None else a._kind for a in args])


class EagerInterpreter:
    """Runs calls. record: whether what the call does is recorded for backward, where an argument wants a gradient."""

    def apply(self, expr: OpExpr, args: Sequence[Tensor | None], record: bool = False) -> Any:
        kinds = tuple([None if a is None else a._kind for a in args])
        found = (expr.recorded if record else expr.calls).get(kinds)
        if found is not None:
            return found(*args)
        return self._first(expr, kinds, args, record)

    def _first(self, expr: OpExpr, kinds: Key, args: Sequence[Tensor | None], record: bool) -> Any:
        """The first call of these kinds: on the reference path, unless one that recorded differently was before."""
        from oprack.interpreter.codegen import Generator

        plain = tuple([None if k is None else k.without_grad for k in kinds])
        trace, values = expr.traces.get(plain), None
        if trace is None:
            with errors_at_user_line():
                trace = Trace(expr, plain, args)
                values = trace.first(args)
            if trace.complete:
                expr.traces[plain] = trace
        call: Callable[..., Any] = Generator(trace, _plan(trace, kinds) if record else None).generate()
        if trace.complete:
            (expr.recorded if record else expr.calls)[kinds] = call
        return call(*args) if values is None else call.finish(values, *args)  # type: ignore[attr-defined]


def _plan(trace: Trace, kinds: Key) -> GradPlan | None:
    """How the gradients of the arguments that want them are computed; None when nothing is recorded."""
    wrt = [i for i, k in enumerate(kinds) if k is not None and k.grad]
    if not wrt:
        return None
    visible, k = [], 0
    for slot, wanted in trace.expr.outputs:
        if slot in trace.expr.returned:
            visible += [k + i for i, w in enumerate(wanted) if w]
        k += len(wanted)
    plan = GradPlan(trace, wrt, visible)
    return None if plan.empty else plan


class DeterministicInterpreter(EagerInterpreter):
    """Runs calls by kernels that give the same bits on every run; what it finds is kept apart from other calls'."""

    def apply(self, expr: OpExpr, args: Sequence[Tensor | None], record: bool = False) -> Any:
        return super().apply(expr.deterministic_twin, args, record)


EAGER = EagerInterpreter()
DETERMINISTIC = DeterministicInterpreter()
