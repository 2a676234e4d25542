"""Operator of select_input."""

from __future__ import annotations

from oprack.runtime import RunContext
from oprack.tensor import Scope

from oprack_control_flow.operators.branch._select import SelectOperator, passed_on


class SelectInputOp(SelectOperator):
    op_type = "select_input"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        value = self.value(scope, self.branch(scope, self.inputs["X"]))
        self.set_output(scope, self.output("Out"), passed_on(value))
