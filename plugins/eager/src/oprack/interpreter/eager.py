"""EagerInterpreter: runs a call now, through a function generated for the metas of its arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from oprack.errors import OprackError
from oprack.interpreter.bound_expr import BoundExpr
from oprack.interpreter.call_generator import CallGenerator, RuleOfOp, Wrapping
from oprack.interpreter.modes import register_interpreter
from oprack.interpreter.op_expr import OpExpr
from oprack.kernel import ANY_KERNEL, KernelRules
from oprack.layers.user_line import name_user_line

if TYPE_CHECKING:
    from oprack.eager_tensor import Tensor

Key = tuple[Any, ...]
RuleMaker = Callable[[BoundExpr, Key], RuleOfOp | None]
"""How the gradients of the arguments that want them are computed; None when nothing is to be recorded."""


# Makes the function for arguments that lie on several ranks; oprack.parallel sets it before any such tensor exists.
_global_calls: list[Callable[..., Any]] = []


def register_global_calls(make: Callable[..., Any]) -> None:
    """Let calls with global tensors be served by the functions that `make` returns.

    Args:
        make: Called as make(expr, metas, args, make_rule) at the first call with arguments of these metas.
    """
    _global_calls[:] = [make]


def metas_of(args: Sequence[Tensor | None]) -> Key:
    """The TensorMeta of each argument, or None where an argument is absent."""
    return tuple([None if a is None else a._meta for a in args])


class EagerInterpreter:
    """Runs calls. make_rule: what says how gradients are computed, where calls are recorded for backward."""

    def apply(self, expr: OpExpr, args: Sequence[Tensor | None], make_rule: RuleMaker | None = None) -> Any:
        """Run a call now.

        Args:
            expr: The op.
            args: Its tensors, None for absent ones.
            make_rule: Makes what autograd records of the call; None: nothing is recorded.

        Returns:
            What the expression asks for.
        """
        metas = tuple([None if a is None else a._meta for a in args])
        found = (expr.calls if make_rule is None else expr.grad_calls).get(metas)
        if found is not None:
            return found(*args)
        return self._first(expr, metas, args, make_rule)

    def _first(self, expr: OpExpr, metas: Key, args: Sequence[Tensor | None], make_rule: RuleMaker | None) -> Any:
        """The first call of these metas: on the reference path, unless one that recorded differently was before."""
        if any([k is not None and k.layout is not None for k in metas]):
            found = _global_calls[0](expr, metas, args, make_rule)
            (expr.calls if make_rule is None else expr.grad_calls)[metas] = found
            return found(*args)
        call, values, complete = generated_call(expr, metas, args, make_rule)
        if complete:
            # Two threads may both generate it; either function serves, and the last one stays.
            (expr.calls if make_rule is None else expr.grad_calls)[metas] = call
        return call(*args) if values is None else call(*args, values=values)


def generated_call(
    expr: OpExpr,
    metas: Key,
    args: Sequence[Tensor | None],
    make_rule: RuleMaker | None,
    wrapping: Callable[[RuleOfOp | None], tuple[RuleOfOp | None, Wrapping]] | None = None,
) -> tuple[Callable[..., Any], Any, bool]:
    """The function that serves calls of an expression with arguments of these metas.

    Args:
        expr: The op.
        metas: Of the arguments, tensors of this process.
        args: The arguments of the first call, which runs on the reference path unless one that recorded differently
            was before.
        make_rule: Makes what autograd records.
        wrapping: For calls on parts of tensors, of what records them there: what records them, and what results are.

    Returns:
        (the function, values of the first call or None if it did not run, whether later calls may use the function).
    """
    # Whether gradients are wanted changes what is recorded, and not which kernel runs.
    plain = tuple([None if k is None else k.without_grad for k in metas])
    bound, values = expr.bound.get(plain), None
    if bound is None:
        try:
            bound = BoundExpr(expr, plain, args)
            values = bound.first(args)
        except OprackError as error:
            name_user_line(error)
            raise
        if bound.complete:
            expr.bound[plain] = bound
    # Generated again for other metas that are bound alike: what is recorded differs.
    rule, wraps = None if make_rule is None else make_rule(bound, metas), None
    if wrapping is not None:
        rule, wraps = wrapping(rule)
    return CallGenerator(bound, rule, wraps).generate(), values, bound.complete


class RestrictedInterpreter(EagerInterpreter):
    """Runs calls by the kernels of a mode that does not allow all; what it finds is kept apart from other calls'.

    Args:
        rules: Which kernels may run.
    """

    def __init__(self, rules: KernelRules) -> None:
        self._rules = rules

    def __repr__(self) -> str:
        return f"<RestrictedInterpreter {self._rules!r}>"

    def apply(self, expr: OpExpr, args: Sequence[Tensor | None], make_rule: RuleMaker | None = None) -> Any:
        return super().apply(expr.restricted(self._rules), args, make_rule)


EAGER = EagerInterpreter()
register_interpreter("eager", lambda rules: EAGER if rules is ANY_KERNEL else RestrictedInterpreter(rules))
