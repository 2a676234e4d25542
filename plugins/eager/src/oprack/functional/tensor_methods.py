"""Methods of tensors: each is a call of an op of oprack.functional."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.eager_tensor import Tensor
from oprack.functional.creation import to_tensor
from oprack.functional.generated import function as function_of
from oprack.functional.op_function import op_function
from oprack.functional.op_methods import OpMethods
from oprack.op.signature import snake_case


class SharedMethods(OpMethods):
    """Methods of tensors and of Variables alike: each is a call of an op."""

    def _operand(self, other: Any) -> Any:
        """An array or a list beside a tensor of a captured function: a constant of its program."""
        return to_tensor(other) if isinstance(other, np.ndarray | list) else None

    def _apply(
        self, op_type: str, inputs: dict[str, Any], attrs: dict[str, Any], slots: tuple[str, ...] = ("Out",)
    ) -> Any:
        names = op_function(op_type).names
        result = function_of(op_type)(**{names[slot]: value for slot, value in inputs.items()}, **attrs)
        return getattr(result, snake_case(slots[0])) if isinstance(result, tuple) else result

    @property
    def T(self) -> Tensor:
        """Dims in reversed order."""
        return self.transpose()  # type: ignore[no-any-return]


class TensorMethods(SharedMethods):
    """Methods of tensors alone."""

    # In place ---------------------------------------------------------------------------------------------------------
    def fill_(self, value: Any) -> Tensor:
        """A number everywhere, in this tensor's memory."""
        self.set_value(np.full(self.shape, value, self._meta.dtype))
        return self  # type: ignore[return-value]

    def copy_(self, other: Any, blocking: bool = True) -> Tensor:
        """The values of a tensor or array of the same shape, in this tensor's memory; it always waits."""
        self.set_value(other)
        return self  # type: ignore[return-value]

    def zero_(self) -> Tensor:
        """Zeros, in this tensor's memory."""
        self.set_value(np.zeros(self.shape, self._meta.dtype))
        return self  # type: ignore[return-value]
