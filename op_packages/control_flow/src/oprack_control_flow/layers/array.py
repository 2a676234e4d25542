"""Tensor arrays: written, read, counted, joined."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, Variable, check_variable
from oprack.types import VarType, dtype_name


# Arguments that are arrays and places in them.
def _array_variable(value: Variable, layer: str) -> Variable:
    check_variable(value, "array", layer)
    if value.type is not VarType.LOD_TENSOR_ARRAY:
        raise InvalidArgumentError(
            f"{layer}: array is the {value.type.name} {value.name!r}; expected one made by layers.create_array or "
            "layers.array_write"
        )
    return value


def _place_variable(value: Variable, layer: str) -> Variable:
    return check_variable(value, "i", layer, {"int32", "int64"})


# An array that nothing has been written to yet.
def create_array(dtype: object, name: str | None = None) -> Variable:
    """Makes an empty tensor array of the current block.

    Args:
        dtype: The dtype of its tensors.
        name: Its name; None: made.

    Returns:
        The array's Variable.
    """
    helper = LayerHelper("array", name=name)
    return helper.create_variable(name, dtype=dtype_name(dtype), type=VarType.LOD_TENSOR_ARRAY)


# Layer of lod_array_length.
def array_length(array: Variable, name: str | None = None) -> Variable:
    """Appends op lod_array_length: the number of places of an array.

    Args:
        array: A tensor array.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of int64 [1].
    """
    inputs = {"X": _array_variable(array, "array_length")}
    return LayerHelper("array_length", name=name).apply("lod_array_length", inputs, stop_gradient=True)


# Layer of read_from_array.
def array_read(array: Variable, i: Variable, name: str | None = None) -> Variable:
    """Appends op read_from_array: the tensor at a place.

    Args:
        array: A tensor array.
        i: The place, an integer Variable of one element.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of the array's dtype.

    Raises:
        InvalidArgumentError: An argument is no such Variable.
    """
    inputs = {"X": _array_variable(array, "array_read"), "I": _place_variable(i, "array_read")}
    return LayerHelper("array_read", name=name).apply("read_from_array", inputs)


# Layer of tensor_array_to_tensor.
def tensor_array_to_tensor(
    input: Variable, axis: int = 1, name: str | None = None, use_stack: bool = False
) -> tuple[Variable, Variable]:
    """Appends op tensor_array_to_tensor: the tensors of an array joined.

    Args:
        input: A tensor array.
        axis: The dim along which they are joined.
        name: Prefix of the names of what the layer makes; None: that of the layer.
        use_stack: Whether they are stacked along a new dim there.

    Returns:
        (the joined tensor, the int32 size of each part).
    """
    inputs = {"X": _array_variable(input, "tensor_array_to_tensor")}
    helper = LayerHelper("tensor_array_to_tensor", name=name)
    out, sizes = helper.apply("tensor_array_to_tensor", inputs, {"axis": axis, "use_stack": use_stack})
    sizes.stop_gradient = True
    return out, sizes


# Layer of write_to_array.
def array_write(x: Variable, i: Variable, array: Variable | None = None, name: str | None = None) -> Variable:
    """Appends op write_to_array: puts x at a place of an array, which grows as needed.

    Args:
        x: A Variable.
        i: The place, an integer Variable of one element.
        array: The array; None: a new one.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        The array.

    Raises:
        InvalidArgumentError: An argument is no such Variable.
    """
    check_variable(x, "x", "array_write")
    array = create_array(x.dtype) if array is None else _array_variable(array, "array_write")
    inputs = {"X": x, "I": _place_variable(i, "array_write")}
    return LayerHelper("array_write", name=name).apply("write_to_array", inputs, outs={"Out": array})
