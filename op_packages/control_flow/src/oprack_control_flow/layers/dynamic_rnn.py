"""DynamicRNN: a step for each place of sequences."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Self, cast

from oprack.errors import InvalidArgumentError
from oprack.layers import Variable

from oprack_control_flow.layers.array import array_read
from oprack_control_flow.layers.loop import _RNN as RNN
from oprack_control_flow.layers.loop import _filled as filled
from oprack_control_flow.layers.rank_table import (
    array_to_lod_tensor,
    lod_rank_table,
    lod_tensor_to_array,
    max_sequence_len,
    reorder_lod_tensor_by_rank,
    shrink_memory,
)


class DynamicRNN(RNN):
    """Runs a step for each place of the longest sequence, over those sequences that are that long.

        rnn = layers.DynamicRNN()
        with rnn.block():
            word = rnn.step_input(sentences)                    # row t of each sequence
            before = rnn.memory(shape=[64])
            hidden = layers.fc([word, before], 64, act="tanh")
            rnn.update_memory(before, hidden)
            rnn.output(hidden)
        out = rnn()                                             # [rows, 64], LoD of sentences

    In a step, rows are the sequences, longest first. Ops while, lod_rank_table, lod_tensor_to_array, shrink_rnn_memory,
    array_to_lod_tensor and others. Raises InvalidArgumentError.
    """

    kind = "dynamic_rnn"

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self._table: Variable | None = None
        self._first: Variable | None = None

    def block(self) -> AbstractContextManager[Self]:
        """Layers go into the step inside this with block."""
        return self._block()

    def step_input(self, x: Variable, level: int = 0) -> Variable:
        """Row t (or sub-sequence t) of each sequence of x that is long enough; all inputs have the same lengths."""
        self._outer(x, "x")
        if x.lod_level < 1:
            raise InvalidArgumentError(
                f"DynamicRNN.step_input: x (variable {x.name!r}) has no LoD; expected sequences, such as "
                "layers.data(..., lod_level=1)"
            )
        with self._outside():
            if self._table is None:
                self._table = lod_rank_table(x, level)
                self._steps = max_sequence_len(self._table)
                self._compare()
            array = lod_tensor_to_array(x, self._table)
            if self._first is None:
                self._first = array
        return array_read(array, self._step)

    def static_input(self, x: Variable) -> Variable:
        """All of x in each step, a sequence (or row) for each sequence that is long enough, in the step's order."""
        table = self._require_input("static_input")
        self._outer(x, "x")
        with self._outside():
            ordered = reorder_lod_tensor_by_rank(x, table)
        return shrink_memory(ordered, self._step, table)

    def memory(
        self,
        init: Variable | None = None,
        shape: Sequence[int] | None = None,
        value: float = 0.0,
        need_reorder: bool = False,
        dtype: str = "float32",
    ) -> Variable:
        """What update_memory stored in the step before; in the first step `init`, or `value` in `shape` (of a row).

        init: a row for each sequence; need_reorder: in the order of the sequences, not longest first.
        """
        table = self._require_input("memory")
        with self._outside():
            if init is not None:
                start = self._outer(init, "init")
                if need_reorder:
                    start = reorder_lod_tensor_by_rank(start, table)
            elif shape is not None:
                rows = array_read(cast(Variable, self._first), self._zero)
                start = filled(self._helper, rows, [-1, *shape], dtype, value, 0, 0)
            else:
                raise InvalidArgumentError("DynamicRNN.memory: expected init or shape")
            outside = self._helper.apply("assign", {"X": start})
        return self._remember(outside, shrink_memory(outside, self._step, table))

    def _require_input(self, what: str) -> Variable:
        if self._table is None:
            raise InvalidArgumentError(
                f"DynamicRNN.{what}: expected a step_input before it, which says how many sequences"
            )
        return self._table

    def _result(self, array: Variable, inner: Variable) -> Variable:
        out = array_to_lod_tensor(array, cast(Variable, self._table))
        out.desc.shape = (-1, *inner.shape[1:])
        return out
