"""Sequences ordered by length, for loops over their places."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array
from oprack.runtime import OperatorBase, RunContext
from oprack.tensor import LoDTensor, LoDTensorArray, Scope

from oprack_control_flow.rank_table import LoDRankTable, join_lods, spans, take_units
from oprack_control_flow.steps import scalar


# What operators with an input RankTable share; a Python loop goes over time steps only.
class RankedOperator(OperatorBase):
    """An op with an input RankTable."""

    def table(self, scope: Scope) -> LoDRankTable:
        name = self.input("RankTable")
        value = self.get_input(scope, name)
        if not isinstance(value, LoDRankTable):
            raise InvalidArgumentError(
                f"op {self.type}: RankTable (variable {name!r}) is a {type(value).__name__}; expected what "
                "lod_rank_table writes"
            )
        return value

    def tensor(self, scope: Scope, slot: str) -> LoDTensor:
        value: LoDTensor = self.get_input(scope, self.input(slot))
        return value

    def put(self, scope: Scope, slot: str, array: Array, lod: Sequence[Sequence[int]] = ()) -> None:
        if slot in self.outputs:
            place = self.tensor(scope, "X").place
            self.set_output(scope, self.output(slot), LoDTensor(array, lod, place=place, check=False))


# Operator of array_to_lod_tensor.
class ArrayToLoDTensorOp(RankedOperator):
    op_type = "array_to_lod_tensor"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        table, array = self.table(scope), self.get_input(scope, self.input("X"))
        held = [len(t.lod[0]) - 1 if t.lod else t.shape[0] for t in array if t is not None]
        expected = [table.active(t) for t in range(table.steps)]
        if not held or held != expected:
            raise InvalidArgumentError(
                f"op array_to_lod_tensor: the tensors of X hold {held} sequences at their time steps; the rank table "
                f"expects {expected}"
            )
        xp = run.device.xp
        joined = xp.concatenate([t.array for t in array])
        offsets = table.offsets()
        rank = np.empty_like(table.index)
        rank[table.index] = np.arange(len(rank))
        lengths = np.diff(offsets)
        steps = spans(np.zeros_like(lengths), lengths)
        first = np.concatenate([[0], np.cumsum(held)])
        units = first[steps] + np.repeat(rank, lengths)
        rows, deeper = take_units(joined, join_lods([t.lod for t in array]), units, xp)
        lod = [*table.coarse_lod, offsets.tolist(), *deeper]
        out = LoDTensor(rows, lod, place=array[0].place, check=False)
        self.set_output(scope, self.output("Out"), out)


# Operator of lod_rank_table.
class LoDRankTableOp(OperatorBase):
    op_type = "lod_rank_table"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        table = LoDRankTable.of(self.get_input(scope, self.input("X")), self.attrs["level"])
        self.set_output(scope, self.output("Out"), table)


# Operator of lod_tensor_to_array.
class LoDTensorToArrayOp(RankedOperator):
    op_type = "lod_tensor_to_array"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        table, x, xp = self.table(scope), self.tensor(scope, "X"), run.device.xp
        offsets, deeper = table.offsets(), x.lod[table.level + 1 :]
        units = len(deeper[0]) - 1 if deeper else x.shape[0]
        if offsets[-1] != units:
            raise InvalidArgumentError(
                f"op lod_tensor_to_array: X has {units} elements but the rank table's sequences {int(offsets[-1])}; "
                "expected the tensor that was ranked, or one of its shape"
            )
        out = LoDTensorArray()
        for t in range(table.steps):
            array, lod = take_units(x.array, deeper, offsets[table.index[: table.active(t)]] + t, xp)
            out.append(LoDTensor(array, lod, place=x.place, check=False))
        self.set_output(scope, self.output("Out"), out)


# Operator of max_sequence_len.
class MaxSequenceLenOp(RankedOperator):
    op_type = "max_sequence_len"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        steps = run.device.xp.asarray([self.table(scope).steps], dtype="int64")
        self.set_output(scope, self.output("Out"), LoDTensor(steps, place=run.place))


# Operator of reorder_lod_tensor_by_rank.
class _Reorder(RankedOperator):
    def reorder(self, scope: Scope, run: RunContext, order: np.ndarray) -> None:
        x = self.tensor(scope, "X")
        units = len(x.lod[0]) - 1 if x.lod else x.shape[0]
        if units != len(order):
            raise InvalidArgumentError(
                f"op {self.type}: X has {units} {'sequences' if x.lod else 'rows'} but the rank table {len(order)}; "
                "expected as many"
            )
        self.put(scope, "Out", *take_units(x.array, x.lod, order, run.device.xp))


class ReorderLoDTensorByRankOp(_Reorder):
    op_type = "reorder_lod_tensor_by_rank"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        self.reorder(scope, run, self.table(scope).index)


class ReorderLoDTensorByRankGradOp(_Reorder):
    op_type = "reorder_lod_tensor_by_rank_grad"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        self.reorder(scope, run, np.argsort(self.table(scope).index, kind="stable"))


# Operator of shrink_rnn_memory.
class ShrinkRnnMemoryOp(RankedOperator):
    op_type = "shrink_rnn_memory"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        x, step = self.tensor(scope, "X"), int(scalar(self.type, "I", self.tensor(scope, "I")))
        self.put(scope, "Out", *take_units(x.array, x.lod, np.arange(self.table(scope).active(step)), run.device.xp))


class ShrinkRnnMemoryGradOp(RankedOperator):
    op_type = "shrink_rnn_memory_grad"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        x = self.tensor(scope, "X")
        grad = run.device.xp.zeros(x.shape, x.array.dtype)
        given = self.inputs.get("Out@GRAD", ())
        flow = scope.find_var(given[0]) if given else None
        if flow is not None and flow.value is not None:
            grad[: flow.value.shape[0]] = flow.value.array
        self.put(scope, "X@GRAD", grad, x.lod)
