"""The same elements again: in memory of their own, as another dtype, under another LoD, side by side."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.errors import InvalidArgumentError
from oprack.kernel import Array
from oprack.layers import LayerHelper, Variable, check_dtype, check_variable
from oprack.types import ALL_DTYPES, dtype_enum

# Layer of assign and assign_value.
_VALUE_SLOTS = {
    "bool": "bool_values",
    "int32": "int32_values",
    "int64": "int64_values",
    "float32": "fp32_values",
    "float64": "fp64_values",
}


def assign(
    input: Array | Sequence[float | str] | Variable, output: Variable | None = None, name: str | None = None
) -> Variable:
    """Copies a Variable, or makes one of numbers that the program then carries: op assign or assign_value.

    Args:
        input: A Variable, an array, a list or a number.
        output: A Variable that receives the values, such as a loop's state; None: a new one.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        output, or the new Variable.

    Raises:
        InvalidArgumentError: input has a dtype that programs do not carry.
    """
    helper = LayerHelper("assign", name=name)
    outs = None if output is None else {"Out": check_variable(output, "output", "assign")}
    if hasattr(input, "desc"):
        return helper.apply("assign", {"X": check_variable(input, "input", "assign")}, outs=outs)
    import numpy as np

    array = np.asarray(input)
    if array.dtype == np.float64 and not isinstance(input, np.ndarray | np.generic):
        array = array.astype(np.float32)  # Python's numbers are float32 here, as in Fluid
    slot = _VALUE_SLOTS.get(str(array.dtype))
    if slot is None:
        raise InvalidArgumentError(
            f"assign: input is {type(input).__name__} of dtype {array.dtype}; expected a Variable, or an array of "
            f"{', '.join(_VALUE_SLOTS)}"
        )
    values = [int(v) for v in array.ravel()] if slot == "bool_values" else array.ravel().tolist()
    attrs = {"shape": list(array.shape), "dtype": int(dtype_enum(str(array.dtype))), slot: values}
    return helper.apply("assign_value", {}, attrs, outs=outs, stop_gradient=True)


# Layer of cast.
def cast(x: Variable, dtype: object, name: str | None = None) -> Variable:
    """Appends op cast: x as another dtype.

    Args:
        x: A Variable.
        dtype: The dtype.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of the shape of x.

    Raises:
        InvalidArgumentError: There is no such dtype.
    """
    check_variable(x, "x", "cast")
    out_dtype = dtype_enum(check_dtype(dtype, "dtype", "cast", ALL_DTYPES))
    attrs = {"in_dtype": int(dtype_enum(x.dtype)), "out_dtype": int(out_dtype)}
    return LayerHelper("cast", name=name).apply("cast", {"X": x}, attrs)


# Layers of lod_reset.
def lod_reset(
    x: Variable, y: Variable | None = None, target_lod: Sequence[int] | None = None, name: str | None = None
) -> Variable:
    """Appends op lod_reset: x with another LoD. One of y and target_lod has to be given.

    Args:
        x: A Variable.
        y: A Variable whose LoD to take, or whose values are offsets, int32.
        target_lod: Offsets, such as [0, 2, 5].
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of the shape and dtype of x.

    Raises:
        InvalidArgumentError: Not exactly one of them is given.
    """
    check_variable(x, "x", "lod_reset")
    if (y is None) == (target_lod is None):
        raise InvalidArgumentError("lod_reset: expected one of y and target_lod, a list of offsets such as [0, 2, 5]")
    attrs = None if target_lod is None else {"target_lod": list(target_lod)}
    return LayerHelper("lod_reset", name=name).apply("lod_reset", {"X": x, "Y": y}, attrs)


def lod_append(x: Variable, level: Sequence[int], name: str | None = None) -> Variable:
    """Appends op lod_reset: x with one more LoD level below its own.

    Args:
        x: A Variable.
        level: A Variable whose LoD to take, or offsets.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of the shape and dtype of x.
    """
    check_variable(x, "x", "lod_append")
    helper = LayerHelper("lod_append", name=name)
    if hasattr(level, "desc"):
        return helper.apply("lod_reset", {"X": x, "Y": level}, {"append": True})
    return helper.apply("lod_reset", {"X": x}, {"target_lod": list(level), "append": True})
