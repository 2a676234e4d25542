"""Logical shapes of a call's outputs, by the op's shape rule on logical shapes of its inputs."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from oprack.errors import OprackError
from oprack.interpreter.bound_expr import BoundExpr
from oprack.interpreter.op_expr import OpExpr
from oprack.tensor import LoDTensor, ShapeOnly
from oprack.tensor.eager_tensor import Tensor, new_tensor
from oprack.tensor.meta import TensorMeta


def logical_shapes(expr: OpExpr, metas: Sequence[TensorMeta | None], shapes: Sequence[Any]) -> list[Any] | None:
    """Logical shapes of the outputs by the op's shape rule; None where they follow from values."""
    names = [slot for slot, n in expr.inputs for _ in range(n)]
    local = [None if m is None else m.local.without_grad for m in metas]
    stand_ins = [None if m is None else _stand_in(m, shape, expr.type) for m, shape in zip(local, shapes, strict=True)]
    try:
        bound = BoundExpr(expr, local, stand_ins)
        values: dict[str, list[Any]] = {slot: [] for slot in dict.fromkeys(names)}
        for slot, t in zip(names, stand_ins, strict=True):
            values[slot].append(
                None if t is None else LoDTensor(t._value, t._lod, place=t.place, check=False, shared=True)
            )
        inferred = bound.operator.ask_shape_rule(values, bound.operator.attrs)  # type: ignore[attr-defined]
    except (OprackError, AttributeError, TypeError):
        return None  # it asks for values, which are in parts; where the call itself is wrong, running it says so
    found = []
    for slot, flags in expr.outputs:
        for i, wanted in enumerate(flags):
            dims = inferred.dims.get((slot, i))
            if wanted and (dims is None or any(d < 0 for d in dims)):
                return None
            found.append(None if dims is None else tuple(dims))
    return None if inferred.from_values else found


def _stand_in(meta: TensorMeta, shape: tuple[int, ...], op_type: str) -> Tensor:
    value = ShapeOnly(SimpleNamespace(shape=shape, dtype=meta.dtype), f"the shape rule of op {op_type}")
    return new_tensor(value, meta, [])
