"""Operator of delete_var."""

from __future__ import annotations

from oprack.runtime import OperatorBase, RunContext
from oprack.tensor import Scope


class DeleteVarOp(OperatorBase):
    op_type = "delete_var"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        for name in self.inputs.get("X", ()):
            var = scope.find_var(name)
            if var is not None:
                var.clear()
