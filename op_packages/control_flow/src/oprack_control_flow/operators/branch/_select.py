"""What select_input and select_output share."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.runtime import OperatorBase
from oprack.tensor import LoDTensor, LoDTensorArray, Scope
from oprack.types import VarType

from oprack_control_flow.steps import reference, scalar, shared


def passed_on(value: LoDTensor) -> LoDTensor:
    """The value for a second variable: same memory, but an array of its own."""
    if isinstance(value, LoDTensor):
        return reference(value)
    if isinstance(value, LoDTensorArray):
        return LoDTensorArray(None if t is None else reference(t) for t in value)
    return shared(value)


class SelectOperator(OperatorBase):
    def branch(self, scope: Scope, names: tuple[str, ...]) -> str:
        """The variable that Mask picks."""
        index = int(scalar(self.type, "Mask", self.get_input(scope, self.input("Mask"))))
        if not 0 <= index < len(names):
            raise InvalidArgumentError(f"op {self.type}: Mask is {index}; expected 0 <= Mask < {len(names)} branches")
        return names[index]

    def value(self, scope: Scope, name: str) -> LoDTensor:
        """Value of a variable; a tensor array that nothing was written to yet is an empty one."""
        var, declared = scope.find_var(name), self.block.find_var_recursive(name)
        if (var is None or var.value is None) and declared is not None and declared.type is VarType.LOD_TENSOR_ARRAY:
            return LoDTensorArray()
        return self.get_input(scope, name)
