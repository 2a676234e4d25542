"""gru and lstm with constant weights, not fused with the product in front: one chain per step of time.

Their input holds the products with it already, and what only their gradients read is left out. Rows are walked in the
time-major order of `_order.Order`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from oprack.kernel import Array, KernelContext

from oprack_onednn.chain.descs import primitive_desc
from oprack_onednn.chain.memory import BUFFERS
from oprack_onednn.chain.parameters import FromConstants, Weights, is_constant
from oprack_onednn.chain.primitive_chain import BoundChain, PrimitiveChain
from oprack_onednn.chain.side_by_side import run_all
from oprack_onednn.chain.thread import CHAIN, THREAD
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.objects import Attributes, MemoryDesc
from oprack_onednn.dnnl.operands import FLOAT, Region
from oprack_onednn.kernels._order import Order, order_of
from oprack_onednn.kernels._recurrent import PrimitivesByThread, threads_for
from oprack_onednn.kernels._steps import run_reference
from oprack_onednn.kernels.declare import onednn_kernel

if TYPE_CHECKING:
    from oprack_onednn.dnnl.objects import Memory
    from oprack_onednn.dnnl.operands import External


class StepPrimitive:
    """One step of n sequences. Operands: states before, weights, x of every gate, states after; all [n, size].

    Attributes:
        weights: How the parts of the op's Weight become what the products take.
    """

    chain: PrimitiveChain
    weights: Sequence[Weights]


_PRIMITIVES = FromConstants(lambda arrays, *cell: PrimitivesByThread())
"""Chains with the weights set, by the sequences of a step; for each weight and cell."""


def walk(
    make: Callable[..., StepPrimitive],
    key: tuple[Any, ...],
    x: np.ndarray,
    weight: np.ndarray,
    bias: np.ndarray | None,
    before: Sequence[np.ndarray | None],
    offsets: Sequence[int],
    is_reverse: bool,
) -> list[np.ndarray] | None:
    """Every row's states; None when oneDNN does not serve the cell.

    Args:
        make: Called with the sequences of a step and `key`.
        x: [N, gates size].
        bias: [gates size] or None.
        before: Of each state what it begins with, [number of sequences, size], or None for zeros.
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

    Args:
        picked: Where the first gate of each row lies among the pieces of x. Rows behind them are computed as well where
            steps have more sequences than there are; they are 0, since old memory may hold numbers that are slow or
            raise.
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
    make: Callable[..., StepPrimitive], key: tuple[Any, ...], n: int, weight: np.ndarray, gates: int, states: int
) -> BoundChain:
    """The chain of a step of n sequences with the weights set."""
    found = THREAD.primitive(("step", make, n, *key), make, n, *key)
    packed = [w.of(weight) for w in found.weights]
    return BoundChain(found.chain, [*[None] * states, *packed, *[None] * (gates + states)])


_ACTIVATIONS = {"sigmoid": "logistic", "tanh": "tanh", "relu": "relu"}


class GruStep(StepPrimitive):
    """Three products with everything else as their post-ops; gates u, r, c."""

    def __init__(self, n: int, size: int, gate: str, activation: str, origin_mode: bool) -> None:
        matrix, square = MemoryDesc.strided((n, size)), MemoryDesc.any((size, size))
        chain = self.chain = PrimitiveChain()
        h = chain.input(matrix)
        given = ("eltwise", _c.ELTWISE[_ACTIVATIONS[gate]], 0.0, 0.0)
        add, sub, mul = (("binary", kind, matrix) for kind in (_c.BINARY_ADD, _c.BINARY_SUB, _c.BINARY_MUL))
        # h after = h + u (c - h), or with origin_mode h + (1 - u) (c - h)
        kept = [("eltwise", _c.ELTWISE["linear"], -1.0, 1.0)] if origin_mode else []
        candidate = ("eltwise", _c.ELTWISE[_ACTIVATIONS[activation]], 0.0, 0.0)
        chains = ([add, given, *kept], [add, given, mul], [add, candidate, sub, mul, add])
        descs = [primitive_desc("matmul", LIBRARY.engine, matrix, square, None, matrix, Attributes(c)) for c in chains]
        # Weight is a buffer: [size, 2 size] for u and r, then [size, size] for c
        shape, wide = (size, size), (2 * size, 1)
        views = ((wide, 0), (wide, size), ((size, 1), 2 * size * size))
        targets = [d.desc(_c.QUERY_WEIGHTS_MD) for d in descs]
        self.weights = [
            Weights(MemoryDesc.strided(shape, strides), target, offset)
            for (strides, offset), target in zip(views, targets, strict=True)
        ]
        w = [chain.input(target) for target in targets]
        x = [chain.input(matrix) for _ in range(3)]
        after = chain.output(matrix)
        u, rh = chain.temporary(matrix), chain.temporary(matrix)

        def post(i: int) -> int:
            return _c.POST_OP * (i + 1) | _c.SRC_1

        chain.add(descs[0], {_c.SRC: h, _c.WEIGHTS: w[0], _c.DST: u, post(0): x[0]})
        chain.add(descs[1], {_c.SRC: h, _c.WEIGHTS: w[1], _c.DST: rh, post(0): x[1], post(2): h})
        chain.add(
            descs[2],
            {_c.SRC: rh, _c.WEIGHTS: w[2], _c.DST: after, post(0): x[2], post(2): h, post(3): u, post(4): h},
        )


def _fits_gru(x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None, offsets: Sequence[int]) -> bool:
    """Whether the arrays have the sizes of a GRU's; NumPy's kernel says what is wrong where they have not."""
    size = weight.shape[0]
    if weight.shape != (size, 3 * size) or x.shape[1:] != (3 * size,) or (bias is not None and bias.size != 3 * size):
        return False
    return x.size > 0 and offsets[-1] == len(x)


@onednn_kernel("gru")
def gru(
    Input: Array,
    Weight: Array,
    H0: Array | None = None,
    Bias: Array | None = None,
    *,
    activation: str,
    gate_activation: str,
    is_reverse: bool,
    origin_mode: bool,
    ctx: KernelContext,
) -> tuple[Array | None, ...]:
    if not is_constant(Weight) or ctx.is_read("BatchGate", "BatchResetHiddenPrev", "BatchHidden"):
        return NotImplemented
    if any(a is not None and a.dtype != FLOAT for a in (Input, Weight, H0, Bias)):
        return NotImplemented
    hidden, lod = None, ctx.lod("Input")
    served = activation in _ACTIVATIONS and gate_activation in _ACTIVATIONS
    if served and lod and _fits_gru(Input, Weight, Bias, lod[-1]):
        key = (Weight.shape[0], gate_activation, activation, origin_mode)
        bias = None if Bias is None else Bias.reshape(-1)
        hidden = walk(GruStep, key, Input, Weight, bias, [H0], lod[-1], is_reverse)
    if hidden is None:
        arrays = {"Input": Input, "Weight": Weight, "H0": H0, "Bias": Bias}
        # What oneDNN does not serve is computed here rather than declined, so that the outputs are the same ones.
        hidden = [run_reference("gru", arrays, ctx.attrs, {"Input": [lod]})[3]]
    # always the same: plans of programs count on which outputs there are
    return None, None, None, hidden[0]


class LstmStep(StepPrimitive):
    """Four products with everything else as their post-ops; gates c', i, f, o, states h, c."""

    def __init__(self, n: int, size: int, gate: str, activation: str, candidate: str) -> None:
        matrix, square = MemoryDesc.strided((n, size)), MemoryDesc.any((size, size))
        chain = self.chain = PrimitiveChain()
        h, c = chain.input(matrix), chain.input(matrix)
        gated, new = (("eltwise", _c.ELTWISE[_ACTIVATIONS[a]], 0.0, 0.0) for a in (gate, candidate))
        add, mul = (("binary", kind, matrix) for kind in (_c.BINARY_ADD, _c.BINARY_MUL))
        # f c, then i, then c after = c' i + f c, then h after = o activation(c after)
        chains = {2: [add, gated, mul], 1: [add, gated], 0: [add, new, mul, add], 3: [add, gated, mul]}
        descs = [
            primitive_desc("matmul", LIBRARY.engine, matrix, square, None, matrix, Attributes(chains[k]))
            for k in range(4)
        ]
        targets = [d.desc(_c.QUERY_WEIGHTS_MD) for d in descs]
        source = MemoryDesc.strided((size, size), (4 * size, 1))
        self.weights = [Weights(source, target, k * size) for k, target in enumerate(targets)]
        w = [chain.input(target) for target in targets]
        x = [chain.input(matrix) for _ in range(4)]
        h_after, c_after = chain.output(matrix), chain.output(matrix)
        kept, i, seen = (chain.temporary(matrix) for _ in range(3))

        def product(k: int, result: External | Memory, *more: tuple[int, External | Memory]) -> None:
            operands = {_c.POST_OP * (at + 1) | _c.SRC_1: m for at, m in ((0, x[k]), *more)}
            chain.add(descs[k], {_c.SRC: h, _c.WEIGHTS: w[k], _c.DST: result, **operands})

        product(2, kept, (2, c))
        product(1, i)
        product(0, c_after, (2, i), (3, kept))
        kind = (_c.FORWARD_INFERENCE, _c.ELTWISE[_ACTIVATIONS[activation]])
        show = primitive_desc("eltwise_forward", LIBRARY.engine, *kind, matrix, matrix, 0.0, 0.0, Attributes())
        chain.add(show, {_c.SRC: c_after, _c.DST: seen})
        product(3, h_after, (2, seen))


def _fits_lstm(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, offsets: Sequence[int]) -> bool:
    """Whether the arrays have the sizes of an LSTM's; NumPy's kernel says what is wrong where they have not."""
    size = weight.shape[0]
    if weight.shape != (size, 4 * size) or x.shape[1:] != (4 * size,) or bias.size != 4 * size:
        return False
    return x.size > 0 and offsets[-1] == len(x)


@onednn_kernel("lstm")
def lstm(
    Input: Array,
    Weight: Array,
    Bias: Array,
    H0: Array | None = None,
    C0: Array | None = None,
    *,
    use_peepholes: bool,
    is_reverse: bool,
    gate_activation: str,
    cell_activation: str,
    candidate_activation: str,
    ctx: KernelContext,
) -> tuple[Array | None, ...]:
    if not is_constant(Weight) or ctx.is_read("BatchGate", "BatchCellPreAct"):
        return NotImplemented
    if any(a is not None and a.dtype != FLOAT for a in (Input, Weight, Bias, H0, C0)):
        return NotImplemented
    states, lod = None, ctx.lod("Input")
    activations = (gate_activation, cell_activation, candidate_activation)
    served = not use_peepholes and all(a in _ACTIVATIONS for a in activations)
    if served and lod and _fits_lstm(Input, Weight, Bias, lod[-1]):
        key = (Weight.shape[0], *activations)
        states = walk(LstmStep, key, Input, Weight, Bias.reshape(-1), [H0, C0], lod[-1], is_reverse)
    if states is None:
        arrays = {"Input": Input, "Weight": Weight, "Bias": Bias, "H0": H0, "C0": C0}
        states = [*run_reference("lstm", arrays, ctx.attrs, {"Input": [lod]})[:2]]
    # always the same: plans of programs count on which outputs there are
    return *states, None, None
