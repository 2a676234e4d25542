"""What a call with global tensors returns: its outputs in the form that the expression asks for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oprack.eager_tensor import Tensor
from oprack.interpreter.op_expr import OpExpr, result_class


def formed(expr: OpExpr, made: Sequence[Tensor | None]) -> Any:
    """The outputs in the form that the expression asks for.

    Args:
        expr: The expression.
        made: Its outputs, flat.

    Returns:
        All of them, one, or a named tuple.
    """
    if expr.flat:
        return made
    by_slot, k = {}, 0
    for slot, flags in expr.outputs:
        by_slot[slot] = made[k : k + len(flags)]
        k += len(flags)
    protos = expr.proto.outputs
    fields = [by_slot[s] if protos[s].duplicable else by_slot[s][0] for s in expr.returned]
    if len(fields) == 1:
        return fields[0]
    return result_class(expr.type, tuple(expr.returned))(*fields) if fields else None
