"""gru over sequences of several lengths, with constant weights: what only its gradient reads is left out.

Rows are walked in time-major order, longest sequence first, so that the sequences that are still running are the first
rows of the step before. A step is three products with everything else as their post-ops.
"""

from __future__ import annotations

import numpy as np

from oprack_onednn import _c
from oprack_onednn.library import LIBRARY
from oprack_onednn.memory import BUFFERS, Weights, address, is_constant
from oprack_onednn.native import Attributes, MemoryDesc, PrimitiveDesc
from oprack_onednn.plan import THREAD, Plan
from oprack_onednn.served import Limits, plain_step, served

_ROWS = 16
_GATES = {"sigmoid": "logistic", "tanh": "tanh", "relu": "relu"}


def rounded(rows):
    """Rows of the plan for a step: few different ones, so that plans repeat."""
    return -(-rows // _ROWS) * _ROWS if rows > _ROWS else 1 << (rows - 1).bit_length()


class StepPlan:
    """One step of n sequences. run(h before, weights of u, r, c, x of u, r, c, h after); all [n, size]."""

    def __init__(self, n, size, gate, activation, origin_mode):
        matrix, square = MemoryDesc.strided((n, size)), MemoryDesc.any((size, size))
        plan = self.plan = Plan()
        h = plan.input(matrix)
        given = ("eltwise", _c.ELTWISE[_GATES[gate]], 0.0, 0.0)
        add, sub, mul = (("binary", kind, matrix) for kind in (_c.BINARY_ADD, _c.BINARY_SUB, _c.BINARY_MUL))
        # h after = h + u (c - h), or with origin_mode h + (1 - u) (c - h)
        kept = [("eltwise", _c.ELTWISE["linear"], -1.0, 1.0)] if origin_mode else []
        candidate = ("eltwise", _c.ELTWISE[_GATES[activation]], 0.0, 0.0)
        chains = ([add, given, *kept], [add, given, mul], [add, candidate, sub, mul, add])
        descs = [PrimitiveDesc("matmul", LIBRARY.engine, matrix, square, None, matrix, Attributes(c)) for c in chains]
        # Weight is a buffer: [size, 2 size] for u and r, then [size, size] for c
        shape, wide = (size, size), (2 * size, 1)
        views = ((wide, 0), (wide, size), ((size, 1), 2 * size * size))
        targets = [d.desc(_c.QUERY_WEIGHTS_MD) for d in descs]
        self.weights = [
            Weights(MemoryDesc.strided(shape, strides), target, offset)
            for (strides, offset), target in zip(views, targets, strict=True)
        ]
        w = [plan.input(target) for target in targets]
        x = [plan.input(matrix) for _ in range(3)]
        after = plan.output(matrix)
        u, rh = plan.temporary(matrix), plan.temporary(matrix)

        def post(i):
            return _c.POST_OP * (i + 1) | _c.SRC_1

        plan.add(descs[0], {_c.SRC: h, _c.WEIGHTS: w[0], _c.DST: u, post(0): x[0]})
        plan.add(descs[1], {_c.SRC: h, _c.WEIGHTS: w[1], _c.DST: rh, post(0): x[1], post(2): h})
        plan.add(
            descs[2],
            {_c.SRC: rh, _c.WEIGHTS: w[2], _c.DST: after, post(0): x[2], post(2): h, post(3): u, post(4): h},
        )


class Order:
    """Time-major order of the rows of sequences. order: sequences by length, longest first; ends: of the steps."""

    def __init__(self, offsets, is_reverse):
        offsets = np.asarray(offsets)
        lengths = np.diff(offsets)
        self.order = np.argsort(-lengths, kind="stable")
        lengths = lengths[self.order]
        steps = int(lengths[0]) if len(lengths) else 0
        counts = len(lengths) - np.searchsorted(lengths[::-1], np.arange(steps), side="right")
        self.ends = np.cumsum(counts)
        time = np.repeat(np.arange(steps), counts)
        sequence = np.arange(len(time)) - (self.ends - counts)[time]
        first = offsets[1:][self.order] - 1 if is_reverse else offsets[:-1][self.order]
        self.rows = first[sequence] + (-time if is_reverse else time)


@served("gru")
def gru(Input, Weight, H0=None, Bias=None, *, activation, gate_activation, is_reverse, origin_mode, ctx):
    if not is_constant(Weight):
        return NotImplemented
    key = (Weight.shape[0], gate_activation, activation, origin_mode)
    hidden = walk(Input, Weight, H0, Bias, is_reverse, ctx.lod("Input"), key)
    if hidden is None:
        arrays = {"Input": Input, "Weight": Weight, "H0": H0, "Bias": Bias}
        hidden = plain_step("gru", arrays, ctx)[3]
    # always the same: plans of programs count on which outputs there are
    return None, None, None, hidden


def walk(x, weight, h0, bias, is_reverse, lod, key):
    """States of all rows; None when NumPy should walk."""
    size, gate_activation, activation, _ = key
    if activation not in _GATES or gate_activation not in _GATES or not len(x) or not lod or size < 16:
        return None
    order = Order(lod[-1], is_reverse)
    count, rows = len(order.order), len(order.rows)
    if rows < Limits.together * len(order.ends):
        return None
    if THREAD.plan(("gru", rounded(1), *key), StepPlan, rounded(1), *key) is None:
        return None
    # steps are rounded up, so the last ones reach behind the end
    gates, hidden = np.split(BUFFERS.take((4, rows + _ROWS, size)), [3])
    parts, hidden = np.ascontiguousarray(x).reshape(-1, size), hidden[0]
    for i, g in enumerate(gates):
        np.take(parts, 3 * order.rows + i, axis=0, out=g[:rows], mode="clip")
        g[rows:] = 0
        if bias is not None:
            g[:rows] += bias.reshape(-1)[i * size : (i + 1) * size]
    before = np.zeros((count + _ROWS, size), x.dtype)
    if h0 is not None:
        before[:count] = h0[order.order]
    starts, base, start = [address(g) for g in gates], address(hidden), 0
    previous = address(before)
    for end in order.ends.tolist():
        n = rounded(end - start)
        found = THREAD.plan(("gru", n, *key), StepPlan, n, *key)
        offset = 4 * start * size
        weights = [w.address(weight) for w in found.weights]
        found.plan.run(THREAD, previous, *weights, *(a + offset for a in starts), base + offset)
        previous, start = base + offset, end
    inverse = np.empty(rows, np.intp)
    inverse[order.rows] = np.arange(rows)
    return np.take(hidden, inverse, axis=0, out=BUFFERS.take((rows, size)), mode="clip")
