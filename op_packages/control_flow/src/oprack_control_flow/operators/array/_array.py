"""What operators of tensor arrays share.

Tensors go in and out without a copy, marked so that nobody writes into them.
"""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.runtime import OperatorBase
from oprack.tensor import LoDTensorArray, Scope

from oprack_control_flow.steps import scalar


class ArrayOperator(OperatorBase):
    def array(self, scope: Scope, slot: str) -> LoDTensorArray:
        """The array of an input slot; empty when nothing was written to it yet."""
        name = self.input(slot)
        var = scope.find_var(name)
        if var is None or var.value is None:
            return LoDTensorArray()
        if not isinstance(var.value, LoDTensorArray):
            raise InvalidArgumentError(
                f"op {self.type}: {slot} (variable {name!r}) is a {type(var.value).__name__}; expected a tensor array, "
                "as write_to_array makes it"
            )
        return var.value

    def place(self, scope: Scope) -> int:
        """The value of I. Raises InvalidArgumentError when it is negative."""
        index = int(scalar(self.type, "I", self.get_input(scope, self.input("I"))))
        if index < 0:
            raise InvalidArgumentError(f"op {self.type}: I is {index}; expected a place from 0")
        return index
