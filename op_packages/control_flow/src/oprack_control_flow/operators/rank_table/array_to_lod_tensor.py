"""Operator of array_to_lod_tensor."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.runtime import RunContext
from oprack.tensor import LoDTensor, Scope

from oprack_control_flow.operators.rank_table._ranked import RankedOperator
from oprack_control_flow.rank_table import join_lods, spans, take_units


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
