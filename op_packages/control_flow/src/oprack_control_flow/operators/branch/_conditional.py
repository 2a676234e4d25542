"""Whether a branch runs."""

from __future__ import annotations

from oprack.runtime import OperatorBase
from oprack.tensor import LoDTensor, Scope

from oprack_control_flow.steps import (
    scalar,
)


class ConditionalOperator(OperatorBase):
    def runs(self, scope: Scope) -> bool:
        """Whether the condition holds."""
        if self.attrs["is_scalar_condition"]:
            return bool(scalar(self.type, "Cond", self.get_input(scope, self.input("Cond"))))
        values = [self.get_input(scope, n) for n in self.inputs.get("Input", ())]
        return all(v.array.size > 0 for v in values if isinstance(v, LoDTensor))
