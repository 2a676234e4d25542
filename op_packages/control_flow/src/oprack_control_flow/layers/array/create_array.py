"""An array that nothing has been written to yet."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable
from oprack.types import VarType, dtype_name


def create_array(dtype: object, name: str | None = None) -> Variable:
    """An empty tensor array of the current block."""
    helper = LayerHelper("array", name=name)
    return helper.create_variable(name, dtype=dtype_name(dtype), type=VarType.LOD_TENSOR_ARRAY)
