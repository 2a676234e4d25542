"""Logical shapes of a call's outputs, by the op's shape rule on logical shapes of its inputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

from oprack.eager_tensor import Tensor, new_tensor
from oprack.eager_tensor.meta import TensorMeta
from oprack.errors import OprackError
from oprack.interpreter.bound_expr import BoundExpr
from oprack.interpreter.op_expr import OpExpr
from oprack.runtime.checks import shapes_elsewhere
from oprack.tensor import LoDTensor, ShapeOnly

Shares = dict[int, int]
"""Number of an output -> number of the argument whose LoD it has."""


def logical_shapes(
    expr: OpExpr, metas: Sequence[TensorMeta | None], shapes: Sequence[Any], lods: Sequence[Any] | None = None
) -> tuple[list[Any] | None, Shares]:
    """What the op's shape rule says of the outputs, flat.

    Args:
        expr: The op.
        metas: Of the arguments.
        shapes: Their logical shapes.
        lods: Their logical LoD, where what is said holds for these alone; -1 is the first dim that only a kernel knows
            then.

    Returns:
        (logical shapes, or None where they follow from values; whose LoD the outputs have).
    """
    names = [slot for slot, n in expr.inputs for _ in range(n)]
    at = {(slot, i): k for slot, i, k in _places(names)}
    local = [None if m is None else m.local.without_grad for m in metas]
    given = lods or [()] * len(names)
    stand_ins = [
        None if m is None else _stand_in(m, shape, lod, expr.type)
        for m, shape, lod in zip(local, shapes, given, strict=True)
    ]
    try:
        bound = BoundExpr(expr, local, stand_ins)
        values: dict[str, list[Any]] = {slot: [] for slot in dict.fromkeys(names)}
        for slot, t in zip(names, stand_ins, strict=True):
            values[slot].append(
                None if t is None else LoDTensor(t._value, t._lod, place=t.place, check=False, shared=True)
            )
        with shapes_elsewhere():  # no machine has to hold the whole
            inferred = bound.operator.ask_shape_rule(values, bound.operator.attrs)  # type: ignore[attr-defined]
    except (OprackError, AttributeError, TypeError):
        return None, {}  # it asks for values, which are in parts; where the call itself is wrong, running it says so
    found: list[Any] = []
    shared = {out: at[source] for source, out in inferred.shares if source in at}
    shares: Shares = {}
    for slot, flags in expr.outputs:
        for i, wanted in enumerate(flags):
            dims = inferred.dims.get((slot, i))
            known = dims is not None and all(d >= 0 for d in (dims[1:] if lods is not None else dims))
            if wanted and not known:
                return None, {}
            if (slot, i) in shared:
                shares[len(found)] = shared[slot, i]
            found.append(None if dims is None else tuple(dims))
    return (None if inferred.from_values and lods is None else found), shares


def _places(names: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    counts: dict[str, int] = {}
    for k, slot in enumerate(names):
        yield slot, counts.setdefault(slot, 0), k
        counts[slot] += 1


def _stand_in(meta: TensorMeta, shape: tuple[int, ...], lod: Any, op_type: str) -> Tensor:
    value = ShapeOnly(SimpleNamespace(shape=shape, dtype=meta.dtype), f"the shape rule of op {op_type}")
    return new_tensor(value, meta, [list(level) for level in lod])
