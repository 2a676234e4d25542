"""Initializers that write given values into the startup program."""

from __future__ import annotations

import math

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.initializer import Initializer
from oprack.kernel import Array
from oprack.layers import Variable


class Constant(Initializer):
    """Every element is `value`: op fill_constant."""

    in_order = True  # see oprack.nn.deferred

    def __init__(self, value: float = 0.0) -> None:
        self.value = value

    def __call__(self, var: Variable) -> None:
        self.append("fill_constant", var, {"value": float(self.value), "str_value": str(self.value)})


class NumpyArrayInitializer(Initializer):
    """A given array, carried by the startup program itself: op assign_value. value: of the variable's shape."""

    _SLOTS = {
        "bool": "bool_values",
        "float32": "fp32_values",
        "float64": "fp64_values",
        "int32": "int32_values",
        "int64": "int64_values",
    }

    def __init__(self, value: Array) -> None:
        self.value = np.asarray(value)

    def __call__(self, var: Variable) -> None:
        slot = self._SLOTS.get(str(var.dtype))
        if slot is None or self.value.shape != var.shape:
            raise InvalidArgumentError(
                f"NumpyArrayInitializer: variable {var.name!r} is {var.dtype}{list(var.shape)}, the array has shape "
                f"{list(self.value.shape)}; expected the same shape and dtype {', '.join(self._SLOTS)}"
            )
        values = self.value.astype(var.dtype).ravel().tolist()
        self.append("assign_value", var, {slot: [int(v) for v in values] if slot == "bool_values" else values})

    def __repr__(self) -> str:
        return f"NumpyArrayInitializer({self.value.dtype}{list(self.value.shape)})"


class Bilinear(Initializer):
    """Weights [out, in, k, k] with which a transposed convolution of stride ceil(k / 2) interpolates linearly."""

    def __call__(self, var: Variable) -> None:
        if len(var.shape) != 4 or var.shape[2] != var.shape[3]:
            raise InvalidArgumentError(
                f"Bilinear: variable {var.name!r} has shape {list(var.shape)}; expected filters [o, i, k, k]"
            )
        k = var.shape[3]
        factor = math.ceil(k / 2)
        center = (2 * factor - 1 - factor % 2) / (2 * factor)
        tap = 1 - np.abs(np.arange(k) / factor - center)
        NumpyArrayInitializer(np.broadcast_to(np.outer(tap, tap), var.shape))(var)


ConstantInitializer = Constant
BilinearInitializer = Bilinear
