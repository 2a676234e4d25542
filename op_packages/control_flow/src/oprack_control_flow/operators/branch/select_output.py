"""Operator of select_output."""

from __future__ import annotations

from oprack.runtime import RunContext
from oprack.tensor import Scope

from oprack_control_flow.operators.branch._select import SelectOperator, passed_on


class SelectOutputOp(SelectOperator):
    op_type = "select_output"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        value = self.value(scope, self.input("X"))
        self.set_output(scope, self.branch(scope, self.outputs["Out"]), passed_on(value))
