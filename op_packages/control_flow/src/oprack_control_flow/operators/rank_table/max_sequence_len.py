"""Operator of max_sequence_len."""

from __future__ import annotations

from oprack.runtime import RunContext
from oprack.tensor import LoDTensor, Scope

from oprack_control_flow.operators.rank_table._ranked import RankedOperator


class MaxSequenceLenOp(RankedOperator):
    op_type = "max_sequence_len"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        steps = run.device.xp.asarray([self.table(scope).steps], dtype="int64")
        self.set_output(scope, self.output("Out"), LoDTensor(steps, place=run.place))
