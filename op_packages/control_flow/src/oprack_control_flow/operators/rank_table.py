"""Operators around rank tables; a Python loop goes over time steps only."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.runtime import OperatorBase, RunContext
from oprack.tensor import LoDTensor, LoDTensorArray, Scope

from oprack_control_flow.rank_table import LoDRankTable, join_lods, spans, take_units
from oprack_control_flow.steps import host_array, scalar


class LoDRankTableOp(OperatorBase):
    op_type = "lod_rank_table"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        table = LoDRankTable.of(self.get_input(scope, self.input("X")), self.attrs["level"])
        self.set_output(scope, self.output("Out"), table)


class _Ranked(OperatorBase):
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

    def put(self, scope: Scope, slot: str, array: Any, lod: Any = ()) -> None:
        if slot in self.outputs:
            place = self.tensor(scope, "X").place
            self.set_output(scope, self.output(slot), LoDTensor(array, lod, place=place, check=False))


class MaxSequenceLenOp(_Ranked):
    op_type = "max_sequence_len"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        steps = run.device.xp.asarray([self.table(scope).steps], dtype="int64")
        self.set_output(scope, self.output("Out"), LoDTensor(steps, place=run.place))


class LoDTensorToArrayOp(_Ranked):
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


class ArrayToLoDTensorOp(_Ranked):
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


class ShrinkRnnMemoryOp(_Ranked):
    op_type = "shrink_rnn_memory"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        x, step = self.tensor(scope, "X"), int(scalar(self.type, "I", self.tensor(scope, "I")))
        self.put(scope, "Out", *take_units(x.array, x.lod, np.arange(self.table(scope).active(step)), run.device.xp))


class ShrinkRnnMemoryGradOp(_Ranked):
    op_type = "shrink_rnn_memory_grad"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        x = self.tensor(scope, "X")
        grad = run.device.xp.zeros(x.shape, x.array.dtype)
        given = self.inputs.get("Out@GRAD", ())
        flow = scope.find_var(given[0]) if given else None
        if flow is not None and flow.value is not None:
            grad[: flow.value.shape[0]] = flow.value.array
        self.put(scope, "X@GRAD", grad, x.lod)


class _Reorder(_Ranked):
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


class _Masked(_Ranked):
    """An op with a bool Mask over the sequences of a level."""

    def mask(self, scope: Scope) -> np.ndarray:
        return host_array(self.tensor(scope, "Mask")).reshape(-1).astype(bool)


class SplitLoDTensorOp(_Masked):
    op_type = "split_lod_tensor"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        x, mask = self.tensor(scope, "X"), self.mask(scope)
        lod = x.lod[self.attrs["level"] :]
        units = len(lod[0]) - 1 if lod else x.shape[0]
        if units != len(mask):
            raise InvalidArgumentError(
                f"op split_lod_tensor: X has {units} {'sequences' if lod else 'rows'} but Mask {len(mask)} elements; "
                "expected as many"
            )
        for slot, chosen in (("OutTrue", mask), ("OutFalse", ~mask)):
            self.put(scope, slot, *take_units(x.array, lod, np.flatnonzero(chosen), run.device.xp))


class MergeLoDTensorOp(_Masked):
    op_type = "merge_lod_tensor"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        mask = self.mask(scope)
        # a branch that did not run, as it had no sequences, leaves its variable empty
        pair = [(slot, scope.get_var(self.input(slot)).value) for slot in ("InTrue", "InFalse")]
        given = [v for _, v in pair if v is not None and (v.shape[0] or v.lod)]
        counts = [0 if v is None else len(v.lod[0]) - 1 if v.lod else v.shape[0] for _, v in pair]
        if counts != [int(mask.sum()), int((~mask).sum())] or not given:
            raise InvalidArgumentError(
                f"op {self.type}: InTrue and InFalse have {counts} sequences; Mask expects "
                f"{[int(mask.sum()), int((~mask).sum())]}"
            )
        order = np.empty(len(mask), np.int64)
        order[mask] = np.arange(counts[0])
        order[~mask] = counts[0] + np.arange(counts[1])
        xp = run.device.xp
        rows, lod = take_units(xp.concatenate([v.array for v in given]), join_lods([v.lod for v in given]), order, xp)
        upper = self.tensor(scope, "X").lod[: self.attrs["level"]]
        self.put(scope, "Out", rows, [*upper, *lod])


class MergeLoDTensorInferOp(MergeLoDTensorOp):
    op_type = "merge_lod_tensor_infer"
