"""How methods and operators that packs write call ops with tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.functional.creation import to_tensor
from oprack.functional.generated import function as function_of
from oprack.functional.op_function import op_function
from oprack.op.signature import snake_case


class OpCalls:
    """What functions of packs ask of a tensor, or of a Variable that stands for one in a captured function."""

    def _operand(self, other: Any) -> Any:
        """An array or a list beside a tensor of a captured function: a constant of its program."""
        return to_tensor(other) if isinstance(other, np.ndarray | list) else None

    def _apply(
        self, op_type: str, inputs: dict[str, Any], attrs: dict[str, Any], slots: tuple[str, ...] = ("Out",)
    ) -> Any:
        names = op_function(op_type).names
        result = function_of(op_type)(**{names[slot]: value for slot, value in inputs.items()}, **attrs)
        return getattr(result, snake_case(slots[0])) if isinstance(result, tuple) else result
