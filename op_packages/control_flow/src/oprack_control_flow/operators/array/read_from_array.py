"""Operator of read_from_array."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.runtime import RunContext
from oprack.tensor import Scope

from oprack_control_flow.operators.array._array import ArrayOperator
from oprack_control_flow.steps import reference, zeros_like


class ReadFromArrayOp(ArrayOperator):
    op_type = "read_from_array"

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        array, index, name = self.array(scope, "X"), self.place(scope), self.output("Out")
        found = array[index] if index < len(array) else None
        if found is not None:
            self.set_output(scope, name, reference(found))
        elif "X_W" in self.inputs:
            self.set_output(scope, name, zeros_like(self.get_input(scope, self.input("X_W")), run.device.xp))
        else:
            raise InvalidArgumentError(
                f"op read_from_array: place {index} of array {self.input('X')!r} was never written; "
                f"it has {len(array)} places, so write it first or read another one"
            )
