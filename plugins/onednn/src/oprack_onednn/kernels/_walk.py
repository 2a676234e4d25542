"""Recurrent ops whose input holds the products with it already: one chain per step of time, three or more products.

Rows are walked in the time-major order of `_order.Order`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from oprack_onednn.chain.memory import BUFFERS
from oprack_onednn.chain.parameters import FromConstants, Weights
from oprack_onednn.chain.primitive_chain import BoundChain, PrimitiveChain
from oprack_onednn.chain.rows import run_all
from oprack_onednn.chain.thread import CHAIN, THREAD
from oprack_onednn.dnnl.operands import Region
from oprack_onednn.kernels._order import Order, order_of
from oprack_onednn.kernels._recurrent import threads_for
from oprack_onednn.kernels._recurrent_layer import PrimitivesByThread


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
    count = x.shape[1] // size
    if any(s is not None and s.shape != (order.count, size) for s in before):
        return None
    # asked for one sequence, which every walk ends with, so that nothing was written yet when oneDNN refuses
    if THREAD.primitive(("step", make, 1, *key), make, 1, *key) is None:
        return None
    rows = order.total + order.behind
    gates = _gates(x, bias, count * order.rows(is_reverse), (count, rows, size))
    states = [BUFFERS.take((rows, size)) for _ in before]
    inputs, results = ([Region(a) for a in arrays] for arrays in (gates, states))
    previous = [(Region(a), 0) for a in _first_states(before, order, size)]
    with threads_for(2 * order.total / len(order.steps) * size * x.shape[1]):
        bound = _PRIMITIVES((weight,), make, *key).own()
        calls = []
        for start, n in order.steps:
            chain = bound[n]
            if chain is None:
                chain = bound.keep(n, _bound_step(make, key, n, weight, count, len(before)), CHAIN)
            # In bytes: rows of the walk are float32 of this size.
            offset = 4 * size * start
            after = [(region, offset) for region in results]
            calls.append((chain, (*previous, *[(region, offset) for region in inputs], *after)))
            previous = after
        run_all(calls)
    inverse = order.inverse(is_reverse)
    return [np.take(s, inverse, axis=0, out=BUFFERS.take((order.total, size)), mode="clip") for s in states]


def _gates(x: np.ndarray, bias: np.ndarray | None, picked: np.ndarray, shape: tuple[int, int, int]) -> np.ndarray:
    """What goes into each gate [gates, rows, size], with the bias and in the order of the walk.

    picked: where the first gate of each row lies among the pieces of x. Rows behind them are computed as well where
    steps have more sequences than there are; they are 0, since old memory may hold numbers that are slow or raise.
    """
    size = shape[-1]
    gates, parts = BUFFERS.take(shape), np.ascontiguousarray(x).reshape(-1, size)
    for i, gate in enumerate(gates):
        np.take(parts, picked + i, axis=0, out=gate[: len(picked)], mode="clip")
        gate[len(picked) :] = 0
        if bias is not None:
            gate[: len(picked)] += bias[i * size : (i + 1) * size]
    return gates


def _first_states(before: Sequence[np.ndarray | None], order: Order, size: int) -> np.ndarray:
    first = np.zeros((len(before), len(order.order) + order.behind, size), np.float32)
    for a, state in zip(first, before, strict=True):
        if state is not None:
            a[: len(order.order)] = state[order.order]
    return first


def _bound_step(
    make: Callable[..., StepPrimitive], key: tuple, n: int, weight: np.ndarray, gates: int, states: int
) -> BoundChain:
    """The chain of a step of n sequences with the weights set."""
    found = THREAD.primitive(("step", make, n, *key), make, n, *key)
    packed = [w.of(weight) for w in found.weights]
    return BoundChain(found.chain, [*[None] * states, *packed, *[None] * (gates + states)])
