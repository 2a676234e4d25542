"""Methods of tensors that packs bring: functions that they write, and ops: `x.reshape([2, 3])`, `x.relu()`."""

from __future__ import annotations

from types import MethodType
from typing import Any

from oprack.eager_tensor.from_above import FROM_ABOVE


class OpMethods:
    """Every op and every written function whose first argument is a tensor is a method: `x.relu()`, `x.topk(2)`.

    The core knows no op, so a type checker that reads this takes any name. The stub package (`oprack stubs`) has one
    method for each installed op and function in its place.
    """

    def __getattr__(self, name: str) -> Any:
        return MethodType(FROM_ABOVE["method"](type(self), name), self)

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *FROM_ABOVE["method_names"]()})
