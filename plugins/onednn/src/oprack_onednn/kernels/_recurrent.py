"""Recurrent layers: primitives that run one or several steps of time, over sequences of any lengths.

A primitive takes n sequences through T steps, products with the input counted. When all sequences are equally long one
primitive does a layer with both of its directions. Otherwise rows are walked in time-major order, longest sequence
first: the sequences that are still running are then the first rows of the step before, and as long as none of them ends
the steps are one primitive.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
from oprack.cache import Cache
from oprack.kernel import Array
from oprack.python.workers import Workers

from oprack_onednn.c.runner import RUNNER
from oprack_onednn.chain.descs import primitive_desc
from oprack_onednn.chain.memory import BUFFERS
from oprack_onednn.chain.primitive_chain import BoundChain, PrimitiveChain
from oprack_onednn.chain.side_by_side import SideBySide, run_all
from oprack_onednn.chain.thread import CHAIN, CHAINS, THREAD, PerThread
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.objects import Attributes, MemoryDesc
from oprack_onednn.dnnl.operands import OperandError, Region
from oprack_onednn.kernels._order import order_of
from oprack_onednn.kernels.declare import Limits
from oprack_onednn.threads.pool import POOL

if TYPE_CHECKING:
    from oprack_onednn.kernels._order import Order


# cell -> gates of the weights, gates of the bias
GATES = {
    "gru": (3, 3),
    "lbr_gru": (3, 4),
    "lstm": (4, 4),
    "peephole_lstm": (4, 4),
    "relu": (1, 1),
    "tanh": (1, 1),
}
BOTH = 3
_LINE = 16  # float32 in a cache line
# Chains that are kept for the same weights and one thread.
_PRIMITIVES = 2048


class PrimitivesByThread:
    """Chains with the same weights, and pairs of these, of every thread that uses them."""

    def __init__(self) -> None:
        self._chains = PerThread()

    def own(self) -> Cache:
        """Those of this thread, to be added to."""
        THREAD.ready()
        key = (THREAD.cache_key,)
        found: Cache | None = self._chains[key]
        if found is None:
            found = self._chains.keep(key, Cache(_PRIMITIVES, CHAINS))
        return found


class Layer:
    """Weights of a layer's directions, as primitives take them, with the gates in oneDNN's order.

    Args:
        cell: A key of GATES.
        w_input: [directions, inputs, gates, size].
        w_state: [directions, size, gates, size].
        bias: [directions, gates of the bias, size].
        peepholes: Of i, f and o, [directions, 3, size], for a cell "lstm" that has them.
    """

    def __init__(
        self,
        cell: str,
        w_input: np.ndarray,
        w_state: np.ndarray,
        bias: np.ndarray,
        peepholes: np.ndarray | None = None,
    ) -> None:
        self.cell = cell if peepholes is None else "peephole_lstm"
        self.has_cells = cell == "lstm"
        given = (w_input, w_state, bias, peepholes)
        self.directions, self.inputs, _, size = w_input.shape
        of_weights, of_bias = GATES[cell]
        shapes = [(self.inputs, of_weights, size), (size, of_weights, size), (of_bias, size), (3, size)]
        for array, shape in zip(given, shapes, strict=True):
            if array is not None and (array.shape != (self.directions, *shape) or array.dtype != np.float32):
                raise OperandError(
                    f"weights of {cell} have shape {array.shape} and dtype {array.dtype}; expected float32 of shape "
                    f"{(self.directions, *shape)}"
                )
        self.size, self._arrays = size, [_aligned(a) for a in given if a is not None]
        self.chains = PrimitivesByThread()

    def weights(self, direction: int, d: int) -> list[np.ndarray]:
        """Those of direction d, or of both."""
        return [a if direction == BOTH else a[d : d + 1] for a in self._arrays]


def _aligned(array: np.ndarray) -> np.ndarray:
    """A copy that begins with a cache line, so that no vector of a row lies in two."""
    raw = np.empty(array.size + _LINE, np.float32)
    start = -raw.ctypes.data % (4 * _LINE) // 4
    copy = raw[start : start + array.size].reshape(array.shape)
    copy[...] = array
    return copy


class StepsPrimitive:
    """`steps` steps of n sequences in one or both directions.

    Operands: x, before, the weights of x and h, bias, peepholes if any, y, after, where `before` and `after` are none
    or h, or h and c of a cell with c. The rows of y are `wide` results apart.
    """

    def __init__(
        self,
        cell: str,
        steps: int,
        n: int,
        inputs: int,
        size: int,
        direction: int,
        before: bool,
        after: bool,
        wide: int,
    ) -> None:
        sides = 2 if direction == BOTH else 1
        of_weights, of_bias = GATES[cell]
        x = MemoryDesc.strided((steps, n, inputs))
        y = MemoryDesc.strided((steps, n, sides * size), (wide * n * size, wide * size, 1))
        weights = [MemoryDesc.strided((1, sides, rows, of_weights, size)) for rows in (inputs, size)]
        bias = MemoryDesc.strided((1, sides, of_bias, size))
        state = MemoryDesc.strided((1, sides, n, size))
        h, last = (state if given else None for given in (before, after))
        kind = cell
        options: tuple[int, ...] = (_c.FORWARD_INFERENCE, direction)
        descs: tuple[MemoryDesc | None, ...] = (x, h, *weights, bias, y, last)
        numbers: tuple[float, ...] = (0,)
        has_cells, peepholes = cell in ("lstm", "peephole_lstm"), None
        if has_cells:
            if cell == "peephole_lstm":
                peepholes = MemoryDesc.strided((1, sides, 3, size))
            kind, descs = "lstm", (x, h, h, *weights, peepholes, None, bias, y, last, last)
        elif cell in ("relu", "tanh"):
            kind, options = "vanilla_rnn", (_c.FORWARD_INFERENCE, _c.ELTWISE[cell], direction)
            numbers = (0, 0.0, 0.0)
        # judged by its name the implementation is a slow one, yet it is products and gates in machine code
        desc = primitive_desc(
            f"{kind}_forward", LIBRARY.engine, *options, *descs, *numbers, Attributes(), any_speed=True
        )
        chain = self.chain = PrimitiveChain()
        count = 1 + has_cells
        memory = {_c.SRC: chain.input(x)}
        memory |= {arg: chain.input(state) for arg in (_c.SRC_1, _c.SRC_2)[: count if before else 0]}
        memory |= {
            _c.WEIGHTS: chain.input(weights[0]),
            _c.WEIGHTS_1: chain.input(weights[1]),
            _c.BIAS: chain.input(bias),
        }
        if peepholes:
            memory[_c.WEIGHTS_2] = chain.input(peepholes)
        memory[_c.DST] = chain.output(y)
        memory |= {arg: chain.output(state) for arg in (_c.DST_1, _c.DST_2)[: count if after else 0]}
        chain.add(desc, memory)


_DIRECTIONS = {(False,): 1, (True,): 2, (False, True): BOTH}
_APART = 3e7  # operations of a direction from which on it has a thread of its own where the pool does not serve
_SHARED = 1e7  # operations of a step from which on threads share it
# Those of the process; each has chains of its own, as every thread.
_OTHERS = Workers(lambda: LIBRARY.num_threads())


def _bound_chain(
    chains: Cache,
    layer: Layer,
    steps: int,
    n: int,
    direction: int,
    d: int = 0,
    before: bool = False,
    after: bool = False,
    wide: int = 0,
) -> BoundChain | None:
    """Of a layer's chains that for some steps, of direction d alone or of both; None when oneDNN does not serve it.

    Args:
        wide: How many results the rows of y are apart; default: without gaps.
    """
    wide = wide or (2 if direction == BOTH else 1)
    key = (steps, n, direction, d, before, after, wide)
    known: BoundChain | None = chains[key]
    if known is not None:
        return known
    shape = (layer.cell, steps, n, layer.inputs, layer.size, direction, before, after, wide)
    found = THREAD.primitive(("recurrent", *shape), StepsPrimitive, *shape)
    if found is None:
        return None
    count = 1 + layer.has_cells
    fixed = [None] * (1 + before * count) + layer.weights(direction, d) + [None] * (1 + after * count)
    return chains.keep(key, BoundChain(found.chain, fixed), CHAIN)


def _threads() -> int:
    """Threads that the primitives of this Python thread may use."""
    return THREAD.limit or LIBRARY.num_threads()


def threads_for(operations: float) -> AbstractContextManager[None]:
    """A context in which primitives share such a step, or leave it to one thread where waiting would take longer."""
    return nullcontext() if operations > _SHARED or _threads() == 1 else THREAD.limited(1)


def _operations(layer: Layer, rows: int) -> int:
    return 2 * rows * layer.size * GATES[layer.cell][0] * (layer.inputs + layer.size)


def directions_apart(layer: Layer, rows: int) -> bool:
    """Whether the two directions of a layer are better computed by a thread each."""
    return layer.directions == 2 and _operations(layer, rows) > _APART and _threads() > 1


def apart_in_pool(layer: Layer, rows: int, steps: int) -> bool:
    """Whether a thread of the pool each is the best for the two directions of a layer, of so many rows in all."""
    if layer.directions != 2 or RUNNER.run_apart is None or POOL.problem:
        return False
    count, operations = _threads(), _operations(layer, rows)
    # two threads for a direction need steps that are worth sharing
    return count > 1 and operations >= Limits.apart and (count < 4 or operations <= _SHARED * steps)


def side_by_side(calls: Callable[[int], Sequence[Any]], layer: Layer, rows: int, steps: int) -> None:
    """Run the chains of calls(d), as run_all takes them, for each direction, with one thread each where that pays.

    Threads that share the steps of one direction wait for each other several times per step.
    """
    count = _threads()
    if apart_in_pool(layer, rows, steps):
        with THREAD.limited(1):
            both = [calls(d) for d in range(2)]
            for chain, _ in (call for found in both for call in found):
                chain.compile_ahead(count)
            chains = [[chain for chain, _ in found] for found in both]
            SideBySide(chains).run([[operands for _, operands in found] for found in both])
        return
    if not directions_apart(layer, rows):
        with threads_for(_operations(layer, rows) / steps):
            found = [call for d in range(layer.directions) for call in calls(d)]
            for chain, _ in found:
                chain.compile_ahead(count)
            run_all(found)
        return

    def other() -> None:
        with THREAD.limited(count // 2):
            found = calls(1)
            # from the other end: each thread gets what the other one has compiled from oneDNN's cache
            for chain, _ in reversed(found):
                chain.compile()
            run_all(found)

    # The second direction runs over there while this thread does the first one; numbers are the same either way.
    done = _OTHERS.submit(other)
    try:
        with THREAD.limited(count - count // 2):
            run_all(calls(0))
    finally:
        # Also after an error here, since the other thread writes to arrays of this call.
        done.wait()


def equal_steps(
    layer: Layer,
    x: Array,
    steps: int,
    n: int,
    direction: int,
    out: Array,
    before: Sequence[Array] = (),
    after: Sequence[Array] = (),
) -> bool:
    """All steps of n equally long sequences at once: x [steps, n, inputs] to out [steps, n, directions size].

    Args:
        before, after: Arrays [directions, n, size] of h, or of h and c.

    Returns:
        False when oneDNN does not serve it.
    """
    if direction == BOTH and apart_in_pool(layer, steps * n, steps):
        return _equal_steps_apart(layer, x, steps, n, out.reshape(steps, n, -1), before, after)
    with threads_for(_operations(layer, n)):
        found = _bound_chain(layer.chains.own(), layer, steps, n, direction, 0, bool(before), bool(after))
        if found is not None:
            found.run(x, *before, out, *after)
    return found is not None


def _equal_steps_apart(
    layer: Layer, x: Array, steps: int, n: int, out: Array, before: Sequence[Array], after: Sequence[Array]
) -> bool:
    """What equal_steps does in both directions, each on a thread of the pool."""
    count = _threads()
    with THREAD.limited(1):
        known = layer.chains.own()
        key = ("apart", steps, n, bool(before), bool(after))
        pair: SideBySide | None = known[key]
        if pair is None:
            found = [_bound_chain(known, layer, steps, n, d + 1, d, bool(before), bool(after), 2) for d in range(2)]
            chains = [chain for chain in found if chain is not None]
            if len(chains) < 2:
                return False
            for chain in chains:
                chain.compile_ahead(count)
            pair = known.keep(key, SideBySide([[chain] for chain in chains]), CHAIN)
        halves = out[..., : layer.size], out[..., layer.size :]
        pair.run([[(x, *(a[d] for a in before), halves[d], *(a[d] for a in after))] for d in range(2)])
    return True


def packed_steps(
    layer: Layer, x: Array, order: Order, reversals: tuple[bool, ...], before: Sequence[Array] = ()
) -> list[Array] | None:
    """Steps of sequences of any lengths: rows x [N, inputs] to packed rows of h, and of c for a cell with c.

    Args:
        before: The states h, or h and c, [directions, n, size] each.

    Returns:
        [h] or [h, c], each [directions, total + behind, size], where c is there at the last step of every sequence;
        None when oneDNN does not serve it.
    """
    if _bound_chain(layer.chains.own(), layer, 1, 1, 1, 0, True, layer.has_cells) is None:
        return None
    rows = order.total + order.behind
    states = [BUFFERS.take((len(reversals), rows, layer.size)) for _ in range(1 + layer.has_cells)]

    def calls(d: int) -> list[Any]:
        return _steps(layer, x, order, d, reversals[d], [a[d] for a in before], [a[d] for a in states])

    side_by_side(calls, layer, order.total, len(order.steps))
    return states


def _steps(
    layer: Layer, x: Array, order: Order, d: int, reverse: bool, before: Sequence[Array], states: Sequence[Array]
) -> list[Any]:
    """Direction d of packed_steps: chains with their operands, which fill its packed rows of h, and of c."""
    size, rows, chains = layer.size, order.total + order.behind, layer.chains.own()
    packed = BUFFERS.take((rows, layer.inputs))
    np.take(x, order.rows(reverse), axis=0, out=packed[: order.total], mode="clip")
    # Steps may take a few more sequences than there are, and would compute with whatever the memory held before.
    packed[order.total :] = 0
    first = np.zeros((len(states), len(order.order) + order.behind, size), np.float32)
    for a, given in zip(first, before, strict=False):
        a[: len(order.order)] = given[order.order]
    row, wide = 4 * size, 4 * layer.inputs
    source, hidden = Region(packed), [Region(a) for a in states]
    previous = [(Region(a), 0) for a in first]
    calls = []
    for start, steps, n, last in order.joined_steps:
        found = _bound_chain(chains, layer, steps, n, 1, d, True, layer.has_cells)
        then = [(region, last * row) for region in hidden]
        after = then if layer.has_cells else ()
        calls.append((found, ((source, start * wide), *previous, (hidden[0], start * row), *after)))
        previous = then
    return calls


def sequences(layer: Layer, x: Array, offsets: Sequence[int], reversals: tuple[bool, ...]) -> Array | None:
    """Every row's h, [N, directions size], of sequences with these offsets; None when oneDNN does not serve it.

    Args:
        reversals: A tuple of booleans, one per direction.
    """
    rows, sides = len(x), len(reversals)
    direction = _DIRECTIONS.get(reversals)
    apart = directions_apart(layer, rows)
    if direction and len(offsets) == 2 and (not apart or apart_in_pool(layer, rows, rows)):
        out = BUFFERS.take((rows, sides * layer.size))
        return out if equal_steps(layer, x, rows, 1, direction, out) else None
    order = order_of(tuple(offsets))
    if len(order.runs) == 1 and direction and (not apart or apart_in_pool(layer, rows, order.runs[0][2])):
        packed, out = (BUFFERS.take((rows, n)) for n in (layer.inputs, sides * layer.size))
        np.take(x, order.rows(False), axis=0, out=packed, mode="clip")
        _, n, steps = order.runs[0]
        if not equal_steps(layer, packed, steps, n, direction, out):
            return None
        return np.take(out, order.inverse(False), axis=0, out=BUFFERS.take(out.shape), mode="clip")
    states = packed_steps(layer, x, order, reversals)
    if states is None:
        return None
    hidden = states[0]
    places = np.empty((rows, sides), np.intp)
    for d, reverse in enumerate(reversals):
        places[:, d] = order.inverse(reverse) + d * hidden.shape[1]
    out = BUFFERS.take((rows, sides, layer.size))
    np.take(hidden.reshape(-1, layer.size), places, axis=0, out=out, mode="clip")
    return out.reshape(rows, -1)
