"""Arguments that are arrays and places in them."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.layers import Variable, check_variable
from oprack.types import VarType


def array_variable(value: Variable, layer: str) -> Variable:
    check_variable(value, "array", layer)
    if value.type is not VarType.LOD_TENSOR_ARRAY:
        raise InvalidArgumentError(
            f"{layer}: array is the {value.type.name} {value.name!r}; expected one made by layers.create_array or "
            "layers.array_write"
        )
    return value


def place_variable(value: Variable, layer: str) -> Variable:
    return check_variable(value, "i", layer, {"int32", "int64"})
