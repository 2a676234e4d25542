"""Calls with global tensors: they miss the tables of local calls, come here, and are served by plans from then on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from oprack.cache import Cache
from oprack.eager_tensor import Tensor
from oprack.interpreter.eager import Planner, register_global_calls
from oprack.interpreter.op_expr import OpExpr
from oprack.parallel.eager.arguments import Metas, common_placement, shapes_of
from oprack.parallel.eager.global_plan import PLANS, Plan
from oprack.parallel.eager.in_place import in_place_calls, out_of_place
from oprack.parallel.eager.sequence_call import sequence_calls
from oprack.parallel.layouts.layout import layout_of


def first(expr: OpExpr, metas: Metas, args: Sequence[Tensor | None], planner: Planner | None) -> Callable[..., Any]:
    """The function that serves calls of an expression with arguments of these metas, some of which have a layout.

    Args:
        expr: The op.
        metas: Of the arguments.
        args: The arguments of the first call.
        planner: Whether calls are recorded.

    Returns:
        A function of the arguments.

    Raises:
        InvalidArgumentError: Arguments lie on different placements, or one of them is of this process alone.
    """
    if expr.in_place:
        return in_place_calls(expr, first(out_of_place(expr), metas, args, planner), planner is not None)
    placement = common_placement(expr, metas, args)
    layouts = [None if m is None else layout_of(m) for m in metas]
    if any(m is not None and m.lod_level for m in metas) or any(k is not None and k.even is not k for k in layouts):
        return sequence_calls(expr, metas, placement, planner)
    plans = Cache(PLANS)

    def call(*given: Tensor | None) -> Any:
        shapes = shapes_of(given)
        plan: Plan | None = plans[shapes]
        if plan is None:
            plan = plans[shapes] = Plan(expr, metas, shapes, placement, planner)
        return plan.run(given)

    return call


register_global_calls(first)
