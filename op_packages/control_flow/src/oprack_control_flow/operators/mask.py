"""Sequences parted by a mask, and put together again."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.runtime import RunContext
from oprack.tensor import Scope

from oprack_control_flow.operators.rank_table import RankedOperator
from oprack_control_flow.rank_table import join_lods, take_units
from oprack_control_flow.steps import host_array


# What operators with an input Mask share.
class MaskedOperator(RankedOperator):
    """An op with a bool Mask over the sequences of a level."""

    def mask(self, scope: Scope) -> np.ndarray:
        return host_array(self.tensor(scope, "Mask")).reshape(-1).astype(bool)


# Operator of merge_lod_tensor.
class MergeLoDTensorOp(MaskedOperator):
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


# Operator of merge_lod_tensor_infer.
class MergeLoDTensorInferOp(MergeLoDTensorOp):
    op_type = "merge_lod_tensor_infer"


# Operator of split_lod_tensor.
class SplitLoDTensorOp(MaskedOperator):
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
