"""Recurrent ops whose input holds the products with it already: one chain per step of time, three or more products.

Rows are walked in the time-major order of `_order.Order`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from oprack_onednn.kernels._derived import FromConstants
from oprack_onednn.kernels._order import order_of
from oprack_onednn.kernels._recurrent import PrimitivesByThread, threads_for
from oprack_onednn.memory import BUFFERS, Weights
from oprack_onednn.operands import Region
from oprack_onednn.primitive_chain import THREAD, BoundChain, PrimitiveChain


class StepPrimitive:
    """One step of n sequences. Operands: states before, weights, x of every gate, states after; all [n, size].

    weights: how parts of the op's Weight become what the products take.
    """

    chain: PrimitiveChain
    weights: Sequence[Weights]


_PRIMITIVES = FromConstants(lambda arrays, *cell: PrimitivesByThread())
"""Chains with the weights set, by the sequences of a step; for each weight and cell."""


def walk(
    make: Callable[..., StepPrimitive],
    key: tuple,
    x: np.ndarray,
    weight: np.ndarray,
    bias: np.ndarray | None,
    before: Sequence[np.ndarray | None],
    offsets: Sequence[int],
    is_reverse: bool,
) -> list[np.ndarray] | None:
    """Every row's states; None when oneDNN does not serve the cell.

    make: called with the sequences of a step and `key`. x: [N, gates size]. bias: [gates size] or None. before: of each
    state what it begins with, [number of sequences, size], or None for zeros.
    """
    size, order = weight.shape[0], order_of(tuple(offsets))
    total, rows = order.total, order.total + order.behind
    count = x.shape[1] // size
    if any(s is not None and s.shape != (order.count, size) for s in before):
        return None
    if THREAD.primitive(("step", make, 1, *key), make, 1, *key) is None:
        return None
    gates = BUFFERS.take((count, rows, size))
    parts, picked = np.ascontiguousarray(x).reshape(-1, size), count * order.rows(is_reverse)
    for i, gate in enumerate(gates):
        np.take(parts, picked + i, axis=0, out=gate[:total], mode="clip")
        gate[total:] = 0
        if bias is not None:
            gate[:total] += bias[i * size : (i + 1) * size]
    states = [BUFFERS.take((rows, size)) for _ in before]
    first = np.zeros((len(before), len(order.order) + order.behind, size), np.float32)
    for a, state in zip(first, before, strict=True):
        if state is not None:
            a[: len(order.order)] = state[order.order]
    given, made = ([Region(a) for a in arrays] for arrays in (gates, states))
    previous = [(Region(a), 0) for a in first]
    with threads_for(2 * total / len(order.steps) * size * x.shape[1]):
        bound = _PRIMITIVES((weight,), make, *key).own()
        for start, n in order.steps:
            chain = bound.get(n)
            if chain is None:
                found = THREAD.primitive(("step", make, n, *key), make, n, *key)
                packed = [w.of(weight) for w in found.weights]
                fixed = [*[None] * len(before), *packed, *[None] * (count + len(before))]
                chain = bound[n] = BoundChain(found.chain, fixed)
            offset = 4 * size * start
            after = [(region, offset) for region in made]
            chain.run(*previous, *[(region, offset) for region in given], *after)
            previous = after
    inverse = order.inverse(is_reverse)
    return [np.take(s, inverse, axis=0, out=BUFFERS.take((total, size)), mode="clip") for s in states]
