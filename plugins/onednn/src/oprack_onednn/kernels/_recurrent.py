"""Recurrent layers for inference in native code (recurrent.c), over sequences of any lengths.

Nothing is made for a size: weights are packed once, and one call takes all steps. Threads have a direction each, or
some of the sequences.
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import Structure, addressof, c_int64, c_void_p
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from oprack.kernel import Array

from oprack_onednn.c.runner import RUNNER, array_type
from oprack_onednn.chain.memory import BUFFERS, TRAINING_BUFFERS
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl.operands import FLOAT, OperandError, address
from oprack_onednn.kernels.declare import Limits

_COLUMNS = 16  # of a block of a packed matrix
_ROWS = 6  # of a product that are computed at a time
CELLS = {"gru": 0, "lbr_gru": 1, "lstm": 2, "rnn": 3}
"""As recurrent.h numbers them."""
FUNCTIONS = {"identity": 0, "sigmoid": 1, "tanh": 2, "relu": 3}
"""As recurrent.h numbers them; of gates and cells."""
KEPT = {"gru": 4, "lbr_gru": 5, "lstm": 6, "rnn": 1}
"""Numbers that the way back reads of each number of a state, as recurrent.c writes them."""
GATES = {"gru": 3, "lbr_gru": 3, "lstm": 4, "rnn": 1}


class _Recurrent(Structure):
    """The struct of recurrent.c, field by field."""

    _fields_ = (
        *((name, c_int64) for name in ("cell", "count", "rows", "size", "inputs", "wide", "stride", "origin")),
        *((name, c_int64) for name in ("x_row", "out_row")),
        ("functions", c_int64 * 3),
        ("gates", c_int64 * 4),
        *((name, c_void_p) for name in ("first", "lengths", "x", "weights_x", "bias", "weights_h", "weights_c")),
        *((name, c_void_p) for name in ("candidate_bias", "peepholes", "h", "c", "out", "out_c", "kept", "scratch")),
    )


class _Matrix(Structure):
    """The struct of product.c, field by field."""

    _fields_ = (
        *((name, c_int64) for name in ("row", "column", "inner", "columns")),
        *((name, c_void_p) for name in ("source", "target")),
    )


def serves() -> bool:
    """Whether native code serves here."""
    return RUNNER.recurrent is not None


def packed_size(inner: int, columns: int) -> int:
    """Numbers of a packed matrix [inner, columns]."""
    return inner * -(-columns // _COLUMNS) * _COLUMNS


def packed(matrix: Array) -> Array:
    """A matrix as native products read it: blocks of columns, a cache line to a row; missing columns are 0.

    Raises:
        OperandError: It is not float32.
    """
    assert RUNNER.pack is not None
    if matrix.dtype != FLOAT:
        raise OperandError(f"a matrix to be packed is {matrix.dtype}; expected {FLOAT}")
    if not matrix.flags.aligned:
        matrix = matrix.copy()
    inner, columns = matrix.shape
    size = packed_size(inner, columns)
    raw = TRAINING_BUFFERS.take((size + _COLUMNS,))
    start = -address(raw) % (_COLUMNS * FLOAT.itemsize) // FLOAT.itemsize
    found = raw[start : start + size]
    row, column = (stride // FLOAT.itemsize for stride in matrix.strides)
    settings = _Matrix(row, column, inner, columns, address(matrix), address(found))
    RUNNER.pack(addressof(settings))
    return found


@dataclass(frozen=True)
class Cell:
    """What a step computes.

    Attributes:
        kind: A key of CELLS.
        functions: Names of the functions of gates, of the candidate (or of a plain cell), and of a cell that is shown.
        origin: Whether a GRU's u keeps the old state.
        gates: Where u, r and c of a GRU, or i, f, g and o of an LSTM, begin in a row of products with the input.
    """

    kind: str
    functions: tuple[str, str, str] = ("sigmoid", "tanh", "tanh")
    origin: bool = False
    gates: tuple[int, ...] = (0, 1, 2, 3)


class Direction:
    """Weights of one direction of a layer.

    Args:
        cell: What a step computes.
        w_state: [size, gates, size], gates as `Cell` names them.
        w_input: [inputs, gates size]; None where rows are products already.
        bias: [gates size], added to products with the input.
        candidate_bias: [size], of an "lbr_gru".
        peepholes: [3, size] of an "lstm"'s i, f and o.

    Raises:
        OperandError: They do not fit together.
    """

    def __init__(
        self,
        cell: Cell,
        w_state: Array,
        w_input: Array | None = None,
        bias: Array | None = None,
        candidate_bias: Array | None = None,
        peepholes: Array | None = None,
    ) -> None:
        gates, size = GATES[cell.kind], w_state.shape[-1]
        self.cell, self.size, self.wide = cell, size, gates * size
        self.inputs = self.wide if w_input is None else len(w_input)
        given = (w_state, w_input, bias, candidate_bias, peepholes)
        shapes = ((size, gates, size), (self.inputs, self.wide), (self.wide,), (size,), (3, size))
        for array, shape in zip(given, shapes, strict=True):
            if array is not None and (array.shape != shape or array.dtype != FLOAT):
                raise OperandError(f"weights of {cell.kind} are {array.dtype}{list(array.shape)}; expected {shape}")
        hidden = w_state.reshape(size, -1)
        split = 2 * size if cell.kind == "gru" else self.wide
        self.weights_h = packed(hidden[:, :split])
        self.weights_c = packed(hidden[:, split:]) if split < self.wide else None
        self.weights_x = None if w_input is None else packed(w_input)
        self.bias = None if bias is None else np.ascontiguousarray(bias)
        self.candidate_bias = None if candidate_bias is None else np.ascontiguousarray(candidate_bias)
        self.peepholes = None if peepholes is None else np.ascontiguousarray(peepholes)

    @property
    def operations(self) -> int:
        """Multiplications and additions of a row."""
        return 2 * self.wide * (self.size + (self.inputs if self.weights_x is not None else 0))


class Order:
    """Sequences that are walked together, longest first; empty ones are left out.

    Args:
        starts: The row in which each begins.
        lengths: Their rows.
        stride: How many rows lie between two rows of one sequence.

    Attributes:
        count: How many there are, empty ones included.
        numbers: Those that are walked, as the caller numbers them.
        lengths: Of those.
    """

    def __init__(self, starts: Array, lengths: Array, stride: int) -> None:
        self.count = len(lengths)
        # Stable, so that equal sequences stay in their order, and results do not depend on the sort.
        order = np.argsort(-lengths, kind="stable")
        self.numbers = order[: np.count_nonzero(lengths)]
        self.lengths = np.ascontiguousarray(lengths[self.numbers], np.int64)
        self._starts, self._stride = np.ascontiguousarray(starts[self.numbers], np.int64), stride

    def walk(self, reverse: bool, part: slice) -> tuple[Array, Array, int]:
        """The first rows and lengths of some of the sequences, and from a row to the next one."""
        starts, lengths = self._starts[part], np.ascontiguousarray(self.lengths[part])
        if reverse:
            return starts + (lengths - 1) * self._stride, lengths, -self._stride
        return np.ascontiguousarray(starts), lengths, self._stride


# The layers of a net walk the same sequences one after the other, forward and back.
@lru_cache(maxsize=16)
def order_of(offsets: tuple[int, ...]) -> Order:
    """The order of sequences with these offsets."""
    ends = np.array(offsets)
    return Order(ends[:-1], np.diff(ends), 1)


def walk(
    directions: Sequence[Direction],
    reversals: Sequence[bool],
    x: Array,
    order: Order,
    out: Array,
    *,
    out_c: Array | None = None,
    kept: Array | None = None,
    before: Sequence[Sequence[Array | None]] = (),
    after: Sequence[Sequence[Array]] = (),
) -> None:
    """All steps of sequences in one or several directions.

    Args:
        directions: Their weights, of equal sizes.
        reversals: Of each direction whether sequences are walked from their last row on.
        x: Rows [N, inputs], row-major and aligned; each row of a sequence is one of them.
        order: The sequences.
        out: Gets the rows of h, [N, directions size], row-major.
        out_c: The same of c.
        kept: Gets what the way back reads, [directions, N, KEPT size] with the cell's KEPT, as recurrent.c says.
        before: For each direction the first h, and c, [order.count, size]; () and None stand for zeros.
        after: For each direction where the last h, and c, are written, rows of sequences that are not empty.
    """
    assert RUNNER.recurrent is not None
    sides, threads = len(directions), THREAD.max_threads
    if sides * len(x) * directions[0].operations < Limits.apart:
        threads = 1
    # a direction is shared where there are threads left, and sequences for products of several rows
    parts = max(1, min(threads // sides, len(order.numbers) // _ROWS))
    jobs, held, ends = array_type(_Recurrent, sides * parts)(), list[object](), []
    for k, (direction, reverse) in enumerate(zip(directions, reversals, strict=True)):
        # the products with the input are made for all parts together
        products = None if parts == 1 or direction.weights_x is None else _products(direction, x, threads, held)
        for i in range(parts):
            part, job = slice(i, None, parts), jobs[k * parts + i]
            states = _states(direction, order.numbers[part], before[k] if before else ())
            if products is None:
                _fill(job, direction, x)
            else:
                _fill(job, direction, products, are_products=True)
            _walk(job, direction, order.walk(reverse, part), states, held)
            for field, rows in (("out", out), ("out_c", out_c)):
                if rows is not None:
                    setattr(job, field, address(rows) + k * direction.size * FLOAT.itemsize)
            job.out_row, job.kept = out.shape[1], None if kept is None else address(kept[k])
            ends.append((k, order.numbers[part], states))
    RUNNER.recurrent(addressof(jobs), len(jobs), min(threads, len(jobs)))
    for k, numbers, states in ends if after else ():
        for target, state in zip(after[k], states, strict=False):
            target[numbers] = state


def _states(direction: Direction, numbers: Array, before: Sequence[Array | None]) -> list[Array]:
    """h, and c of an LSTM, of some sequences before their first steps."""
    given = [*before, None, None][: 1 + (direction.cell.kind == "lstm")]
    zeros = len(numbers), direction.size
    return [np.zeros(zeros, np.float32) if s is None else np.take(s, numbers, axis=0) for s in given]


def _fill(job: _Recurrent, direction: Direction, x: Array, are_products: bool = False) -> None:
    """Say what a job has of its weights and rows."""
    cell = direction.cell
    job.cell, job.size, job.inputs, job.wide = CELLS[cell.kind], direction.size, direction.inputs, direction.wide
    job.origin, job.rows, job.x_row = cell.origin, len(x), x.shape[1]
    job.functions[:] = [FUNCTIONS[name] for name in cell.functions]
    job.gates[: len(cell.gates)] = cell.gates
    job.x = address(x)
    of_x = () if are_products else ("weights_x", "bias")
    for field in ("weights_h", "weights_c", "candidate_bias", "peepholes", *of_x):
        array = getattr(direction, field)
        if array is not None:
            setattr(job, field, address(array))


def _walk(
    job: _Recurrent,
    direction: Direction,
    walked: tuple[Array, Array, int],
    states: Sequence[Array],
    kept: list[object],
) -> None:
    """Say which sequences a job walks, and give it room for what it makes of them."""
    first, lengths, job.stride = walked
    job.count = len(first)
    products = job.rows * direction.wide if job.weights_x else 0
    scratch = BUFFERS.take((products + job.count * (direction.wide + direction.size),))
    job.first, job.lengths, job.scratch = address(first), address(lengths), address(scratch)
    job.h, job.c = address(states[0]), address(states[-1])
    kept += [first, lengths, scratch]


def _products(direction: Direction, x: Array, threads: int, kept: list[object]) -> Array:
    """The products of all rows with the weights of the input, of which threads make some each."""
    assert RUNNER.recurrent is not None
    found = BUFFERS.take((len(x), direction.wide))
    jobs = array_type(_Recurrent, threads)()
    for i, job in enumerate(jobs):
        begin, end = len(x) * i // threads, len(x) * (i + 1) // threads
        if end > begin:
            _fill(job, direction, x[begin:end])
            job.scratch = address(found[begin:])
    RUNNER.recurrent(addressof(jobs), threads, threads)
    kept.append(found)
    return found


def sequences(directions: Sequence[Direction], x: Array, offsets: Sequence[int], reversals: Sequence[bool]) -> Array:
    """Every row's h, [N, directions size], of sequences with these offsets, for rows x [N, inputs]."""
    out = BUFFERS.take((len(x), len(directions) * directions[0].size))
    walk(directions, reversals, x, order_of(tuple(offsets)), out)
    return out
