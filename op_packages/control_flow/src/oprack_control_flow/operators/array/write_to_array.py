"""Operator of write_to_array."""

from __future__ import annotations

from oprack.device import dense_rows
from oprack.errors import InvalidArgumentError
from oprack.runtime import RunContext
from oprack.tensor import LoDTensor, LoDTensorArray, Scope, SelectedRows

from oprack_control_flow.operators.array._array import ArrayOperator
from oprack_control_flow.steps import reference


class WriteToArrayOp(ArrayOperator):
    """Changes the array in place, so that outer scopes see it."""

    op_type = "write_to_array"
    _LONGEST = 1 << 24  # places; a program must not fill the memory with a wild index

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        index, name = self.place(scope), self.output("Out")
        value = self.get_input(scope, self.input("X"))
        if index >= self._LONGEST:
            raise InvalidArgumentError(f"op write_to_array: I is {index}; expected a place below {self._LONGEST}")
        var = scope.find_var(name) or scope.var(name)
        if not isinstance(var.value, LoDTensorArray):
            var.value = LoDTensorArray()
        var.value.extend([None] * (index + 1 - len(var.value)))
        if isinstance(value, SelectedRows):
            var.value[index] = LoDTensor(dense_rows(value, run.device.xp), place=value.place)
        else:
            var.value[index] = reference(value)
