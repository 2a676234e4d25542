"""Operator of lod_rank_table."""

from __future__ import annotations

from oprack.runtime import OperatorBase, RunContext
from oprack.tensor import Scope

from oprack_control_flow.rank_table import LoDRankTable


class LoDRankTableOp(OperatorBase):
    op_type = "lod_rank_table"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        table = LoDRankTable.of(self.get_input(scope, self.input("X")), self.attrs["level"])
        self.set_output(scope, self.output("Out"), table)
