"""Methods of tensors: each is a call of an op of oprack.functional."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.eager_tensor import Tensor
from oprack.functional.creation import to_tensor
from oprack.functional.generated import function as function_of
from oprack.functional.op_function import op_function
from oprack.functional.op_methods import OpMethods
from oprack.functional.tensor_index import get_item, set_item
from oprack.functional.tensor_operators import array_operand, operator
from oprack.layers.operators import Operators
from oprack.op.signature import snake_case


class SharedMethods(Operators, OpMethods):
    """Methods of tensors and of Variables alike: each is a call of an op."""

    def _operand(self, other: Any, role: str) -> Any:
        """An array or a list beside a tensor of a captured function: a constant of its program."""
        found = to_tensor(other) if isinstance(other, np.ndarray | list) else other
        return found if found is not other else Operators._operand(self, other, role)

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

    __add__, __radd__ = operator("add", "__add__")
    __sub__, __rsub__ = operator("subtract", "__sub__")
    __mul__, __rmul__ = operator("multiply", "__mul__")
    __truediv__, __rtruediv__ = operator("divide", "__truediv__")
    __pow__, __rpow__ = operator("power", "__pow__")
    __floordiv__, __rfloordiv__ = operator("floor_divide", "__floordiv__")
    __mod__, __rmod__ = operator("modulo", "__mod__")
    __matmul__, _ = operator("matrix_product", "__matmul__")
    __lt__, _ = operator("less", "__lt__")
    __le__, _ = operator("less_or_equal", "__le__")
    __gt__, _ = operator("greater", "__gt__")
    __ge__, _ = operator("greater_or_equal", "__ge__")
    __eq__, _ = operator("equals", "__eq__")
    __ne__, _ = operator("differs", "__ne__")
    __hash__ = object.__hash__
    del _

    def __rmatmul__(self, other: Any) -> Any:
        other = array_operand(self, other)
        return other if other is NotImplemented else other @ self

    # Indexing ---------------------------------------------------------------------------------------------------------
    def __getitem__(self, index: Any) -> Tensor:  # type: ignore[override]
        """x[2], x[1:3], x[..., 0], x[None], x[mask], x[[0, 2]]; gradients flow back through it."""
        return get_item(self, index)  # type: ignore[no-any-return]

    def __setitem__(self, index: Any, value: Any) -> None:
        """Write into this tensor; recorded when it, or the value, wants a gradient."""
        set_item(self, index, value)

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
