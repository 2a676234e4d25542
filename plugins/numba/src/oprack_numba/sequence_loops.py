"""The loops over the steps of sequences, as numba compiles them (`loops`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from oprack_numba.loops import Array, compiled


@compiled
def _add_product(total: Array, row: Array, w: Array) -> None:
    """Add `row @ w` to `total`, four rows of w at a time."""
    whole = row.size - row.size % 4
    for k in range(0, whole, 4):
        a, b, c, d = row[k], row[k + 1], row[k + 2], row[k + 3]
        wa, wb, wc, wd = w[k], w[k + 1], w[k + 2], w[k + 3]
        for j in range(total.size):
            total[j] += (a * wa[j] + b * wb[j]) + (c * wc[j] + d * wd[j])
    for k in range(whole, row.size):
        a, wa = row[k], w[k]
        for j in range(total.size):
            total[j] += a * wa[j]


# Cephes' polynomial, in float32 throughout: numbers that numba takes for float64 or int64 would not fill a vector
_MOST, _LEAST, _LOG2_E, _ROUND = np.float32(88), np.float32(-87), np.float32(1.44269504), np.float32(12582912)
_LN2_HIGH, _LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
_E5, _E4, _E3 = np.float32(1.9875691500e-4), np.float32(1.3981999507e-3), np.float32(8.3334519073e-3)
_E2, _E1, _E0 = np.float32(4.1665795894e-2), np.float32(1.6666665459e-1), np.float32(5.0000001201e-1)
_T4, _T3, _T2 = np.float32(-5.70498872745e-3), np.float32(2.06390887954e-2), np.float32(-5.37397155531e-2)
_T1, _T0, _NEAR = np.float32(1.33314422036e-1), np.float32(-3.33332819422e-1), np.float32(0.390625)
_ONE, _TWO = np.float32(1), np.float32(2)


@compiled
def _exponential(x: Any) -> Any:
    """Within two units of the last place of float32; NaN stays NaN."""
    x = _MOST if x > _MOST else x
    x = _LEAST if x < _LEAST else x
    n = np.float32(x * _LOG2_E + _ROUND)  # to the nearest integer, by rounding of the sum
    power = np.int32((np.float32(n).view(np.int32) + np.int32(127)) << 23).view(np.float32)
    n -= _ROUND
    x = x - n * _LN2_HIGH - n * _LN2_LOW
    y = ((((_E5 * x + _E4) * x + _E3) * x + _E2) * x + _E1) * x + _E0
    return (y * x * x + x + _ONE) * power


@compiled
def _tanh(x: Any) -> Any:
    z = x * x
    near = ((((_T4 * z + _T3) * z + _T2) * z + _T1) * z + _T0) * z * x + x
    # the difference loses the digits of what is near 0
    return near if z < _NEAR else _ONE - _TWO / (_exponential(_TWO * x) + _ONE)


@compiled
def gru_gates(gates: Array, old: Array, reset: Array) -> None:
    """The gates of a step of a GRU of sigmoid and tanh.

    Args:
        gates: [rows, 3 D], pre-activations, of which the first 2 D become gates.
        old: [rows, D], the states before.
        reset: [rows, D], which gets what the second gate leaves of them.
    """
    size = reset.shape[1]
    for row in range(reset.shape[0]):
        both, state, kept = gates[row, : 2 * size], old[row], reset[row]
        for j in range(both.size):
            both[j] = _ONE / (_ONE + _exponential(-both[j]))
        for j in range(size):
            kept[j] = both[size + j] * state[j]


@compiled
def gru_state(gates: Array, old: Array, hidden: Array, origin: Any) -> None:
    """The states of a step of a GRU of sigmoid and tanh.

    Args:
        gates: [rows, 3 D], of which the last D become the candidates.
        old: [rows, D], the states before.
        hidden: [rows, D], which is written.
        origin: Whether the first gate keeps the old state, and not the new one.
    """
    size = hidden.shape[1]
    for row in range(hidden.shape[0]):
        update, new, state, out = gates[row, :size], gates[row, 2 * size :], old[row], hidden[row]
        for j in range(size):
            new[j] = _tanh(new[j])
        if origin:
            for j in range(size):
                out[j] = (state[j] - new[j]) * update[j] + new[j]
        else:
            for j in range(size):
                out[j] = (new[j] - state[j]) * update[j] + state[j]


@compiled
def gru(
    gates: Array,
    w_gates: Array,
    w_candidate: Array,
    starts: Array,
    first: Array,
    begun: Any,
    reset: Array,
    hidden: Array,
    origin: Any,
) -> None:
    """All steps of a GRU of sigmoid and tanh.

    Args:
        gates: [rows, 3 D], pre-activations by steps, which become gates.
        w_gates: [D, 2 D].
        w_candidate: [D, D].
        starts: The first row of each step, and the end; a step has no more rows than the one before.
        first: The states before the first step, a row for each of its rows.
        begun: Whether they are not all 0.
        reset: [rows, D], which is written.
        hidden: [rows, D], which is written.
        origin: Whether the first gate keeps the old state, and not the new one.
    """
    size, old = w_candidate.shape[0], first
    for step in range(starts.size - 1):
        begin, end = starts[step], starts[step + 1]
        now, kept, out = gates[begin:end], reset[begin:end], hidden[begin:end]
        rows = out.shape[0] if step or begun else 0
        for row in range(rows):
            _add_product(now[row, : 2 * size], old[row], w_gates)
        gru_gates(now, old, kept)
        for row in range(rows):
            _add_product(now[row, 2 * size :], kept[row], w_candidate)
        gru_state(now, old, out, origin)
        old = out


@compiled
def viterbi(emission: Array, offsets: Array, scores: Array, best: Array, path: Array, first: int, last: int) -> None:
    """The best labels of sequences `first` to `last`; the first of equally good ones.

    Args:
        emission: [rows, labels].
        offsets: Where each sequence begins, and the end.
        scores: [labels + 2, labels], added to the first row, to the last, and from label to label.
        best: Like emission, for what is best up to each row.
        path: [rows], which is written.
        first: Sequence to begin with.
        last: Sequence to end before.
    """
    tags, follow = emission.shape[1], scores[2:]
    for sequence in range(first, last):
        begin, end = offsets[sequence], offsets[sequence + 1]
        for row in range(begin, end):
            now = best[row]
            now[:] = scores[0] if row == begin else best[row - 1, 0] + follow[0]
            for i in range(1, tags if row > begin else 0):
                before, to = best[row - 1, i], follow[i]
                for j in range(tags):
                    found, known = before + to[j], now[j]
                    now[j] = found if found > known else known
            now += emission[row]
        for row in range(end - 1, begin - 1, -1):
            chosen, most = 0, emission.dtype.type(0)
            for i in range(tags):
                found = best[row, i] + (scores[1, i] if row == end - 1 else follow[i, path[row + 1]])
                if i == 0 or found > most:
                    chosen, most = i, found
            path[row] = chosen
