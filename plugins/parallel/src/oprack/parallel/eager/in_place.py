"""Calls in place on global tensors: computed as others are, and the result takes the place of the argument."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oprack.eager_tensor import Tensor
from oprack.errors import InvalidArgumentError
from oprack.interpreter.op_expr import OpExpr
from oprack.parallel.eager.global_tensor import everywhere, relaid
from oprack.parallel.eager.results import formed
from oprack.parallel.layouts.layout import layout_of


def out_of_place(expr: OpExpr) -> OpExpr:
    """The expression that gives its outputs, flat, as tensors of their own."""
    return OpExpr(expr.info, expr.attrs, expr.inputs, expr.outputs, None, flat=True)


def in_place_calls(expr: OpExpr, computed: Callable[..., Any], recorded: bool) -> Callable[..., Any]:
    """The function that serves calls in place.

    An argument that is overwritten keeps its layout: what the call gives is brought into it. One that gets another
    shape lies as the call gives it. Results of earlier calls never change with it, whereas on one process those of
    reshapes and slices lie in its memory: whether parts do goes by the layouts that ranks choose.

    Args:
        expr: The expression, with its pairs of slots.
        computed: Serves calls of `out_of_place(expr)`.
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
        z = relaid(z, made, layout.even)
    else:  # a split of other dims says nothing of these
        a._meta, a._logical_shape = made.even.meta(a._meta.local), z.shape
    a._overwrite(z._value, z._node, op_type)
    return a
