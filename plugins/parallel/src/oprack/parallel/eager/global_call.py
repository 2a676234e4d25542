"""Calls with global tensors: they miss the tables of local calls, come here, and are served by plans from then on.

Calls in place are computed as others are, and the result takes the place of the argument.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from oprack.cache import Cache
from oprack.eager_tensor import Tensor
from oprack.errors import InvalidArgumentError
from oprack.interpreter.eager import RuleMaker, register_global_calls
from oprack.interpreter.op_expr import OpExpr
from oprack.parallel.eager.arguments import Metas, common_placement, formed, shapes_of
from oprack.parallel.eager.global_plan import PLANS, Plan
from oprack.parallel.eager.global_tensor import everywhere, relaid
from oprack.parallel.eager.sequence_call import Lods, SequencePlan, sequence_calls
from oprack.parallel.layouts.layout import layout_of
from oprack.runtime.plan.codegen import generated_function


def first(expr: OpExpr, metas: Metas, args: Sequence[Tensor | None], make_rule: RuleMaker | None) -> Callable[..., Any]:
    """The function that serves calls of an expression with arguments of these metas, some of which have a layout.

    Args:
        expr: The op.
        metas: Of the arguments.
        args: The arguments of the first call.
        make_rule: Whether calls are recorded.

    Returns:
        A function of the arguments.

    Raises:
        InvalidArgumentError: Arguments lie on different placements, or one of them is of this process alone.
    """
    if expr.in_place:
        return _in_place_calls(expr, first(_out_of_place(expr), metas, args, make_rule), make_rule is not None)
    placement = common_placement(expr, metas, args)
    layouts = [None if m is None else layout_of(m) for m in metas]
    if any(m is not None and m.lod_level for m in metas) or any(k is not None and k.even is not k for k in layouts):
        return sequence_calls(expr, metas, placement, make_rule)
    calls = Cache(PLANS)

    def planned(*given: Tensor | None) -> Any:
        shapes = shapes_of(given)
        plan = Plan(expr, metas, shapes, placement, make_rule)
        if plan.results is None and expr.info.sbp is not None:  # it may make sequences of what has none
            lods: Lods = ((),) * len(given)
            plan = SequencePlan(expr, metas, shapes, placement, make_rule, lods, [None] * len(given))
        found = plan.call(*given)
        calls[shapes] = plan.call
        return found

    return _by_shapes(metas, calls, planned)


def _by_shapes(metas: Metas, calls: Cache, planned: Callable[..., Any]) -> Callable[..., Any]:
    """A function that looks for what serves arguments of their shapes, and calls it."""
    args = [f"a{k}" for k in range(len(metas))]
    shapes = [
        "None" if m is None else f"{a}._logical_shape" if m.layout is not None else f"{a}.shape"
        for a, m in zip(args, metas, strict=True)
    ]
    given = ", ".join(args)
    source = (
        f"def call({given}):\n"
        f"    found = calls[({', '.join(shapes)},)]\n"
        f"    return planned({given}) if found is None else found({given})\n"
    )
    names = {"__name__": __name__, "calls": calls, "planned": planned}
    return generated_function(source, "call", "calls by shapes", names)


def _out_of_place(expr: OpExpr) -> OpExpr:
    """The expression that gives its outputs, flat, as tensors of their own."""
    return OpExpr(expr.info, expr.attrs, expr.inputs, expr.outputs, None, flat=True, rules=expr.rules)


def _in_place_calls(expr: OpExpr, computed: Callable[..., Any], recorded: bool) -> Callable[..., Any]:
    """The function that serves calls in place.

    An argument that is overwritten keeps its layout: what the call gives is brought into it. One that gets another
    shape lies as the call gives it. Results of earlier calls never change with it, whereas on one process those of
    reshapes and slices lie in its memory: whether parts do goes by the layouts that ranks choose.

    Args:
        expr: The expression, with its pairs of slots.
        computed: Serves calls of `_out_of_place(expr)`.
        recorded: Whether gradients may flow back through the calls.

    Returns:
        A function of the arguments.
    """
    slots_in = [slot for slot, n in expr.inputs for _ in range(n)]
    slots_out = [slot for slot, flags in expr.outputs for _ in flags]
    tied = [
        (slots_in.index(source), slots_out.index(out))
        for source, out in expr.in_place.items()
        if source in slots_in and out in slots_out
    ]

    def call(*given: Tensor | None) -> Any:
        for k, _ in tied:
            a = given[k]
            if a is not None and recorded:
                a.require_writable(expr.type)
        made = list(computed(*given))
        for k, j in tied:
            a, z = given[k], made[j]
            if a is not None and z is not None:
                made[j] = _overwritten(expr.type, a, z)
        return formed(expr, made)

    return call


def _overwritten(op_type: str, a: Tensor, z: Tensor) -> Tensor:
    made = layout_of(z._meta)
    assert made is not None
    layout = layout_of(a._meta) or everywhere(made)  # one of this process alone is the same on each rank
    if a._meta.layout is None and (z.shape != a.shape or z._node is not None):
        raise InvalidArgumentError(
            f"op {op_type}: {a.describe()} can't be overwritten by {z.describe()}; expected a tensor of the same "
            "shape, and a global one where gradients flow: leave in_place out and use what the call returns"
        )
    if z.shape == a.shape:
        z = relaid(z, layout.even)
    else:  # a split of other dims says nothing of these
        a._meta, a._logical_shape = made.even.meta(a._meta.local), z.shape
    a._overwrite(z._value, z._node, op_type)
    return a


register_global_calls(first)
