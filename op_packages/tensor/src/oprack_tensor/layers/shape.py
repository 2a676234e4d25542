"""The same elements in another shape, order or dtype."""

from __future__ import annotations

from oprack.layers import LayerHelper, check_dtype, check_variable, int_list
from oprack.types import ALL_DTYPES, dtype_enum


def reshape(x, shape, actual_shape=None, act=None, inplace=False, name=None):
    """x in another shape: -1 (once) for what is left over, 0 for the dim of x there; Variables of one element may be
    among the ints, or `shape` is one integer Variable.

    actual_shape: an integer Variable that overrides `shape` when the program runs. inplace is accepted for old programs
    and changes nothing: memory is shared whenever that is safe. Op reshape2. Raises InvalidArgumentError.
    """
    check_variable(x, "x", "reshape")
    helper = LayerHelper("reshape2", name=name, act=act)
    dims = int_list(helper, shape, "shape")
    tensor = dims.tensor if actual_shape is None else check_variable(actual_shape, "actual_shape", "reshape")
    inputs = {"X": x, "Shape": tensor, "ShapeTensor": dims.tensors or None}
    return helper.append_activation(helper.apply("reshape2", inputs, {"shape": dims.values}))


def squeeze(input, axes, name=None):
    """input without the dims `axes`, which have size 1; an empty list: without all such dims. Op squeeze2."""
    check_variable(input, "input", "squeeze")
    return LayerHelper("squeeze2", name=name).apply("squeeze2", {"X": input}, {"axes": _ints(axes)})


def unsqueeze(input, axes, name=None):
    """input with dims of size 1 at `axes` of the result; Variables of one element may be among them. Op unsqueeze2."""
    check_variable(input, "input", "unsqueeze")
    helper = LayerHelper("unsqueeze2", name=name)
    dims = int_list(helper, axes, "axes")
    inputs = {"X": input, "AxesTensor": dims.tensor, "AxesTensorList": dims.tensors or None}
    return helper.apply("unsqueeze2", inputs, {"axes": dims.values if dims.known else None})


def flatten(x, axis=1, name=None):
    """x as a matrix whose rows are the dims before `axis`. Op flatten2. Raises InvalidArgumentError."""
    check_variable(x, "x", "flatten")
    return LayerHelper("flatten", name=name).apply("flatten2", {"X": x}, {"axis": axis})


def transpose(x, perm, name=None):
    """Dim i of the result is dim perm[i] of x. Op transpose2. Raises InvalidArgumentError."""
    check_variable(x, "x", "transpose")
    return LayerHelper("transpose", name=name).apply("transpose2", {"X": x}, {"axis": list(perm)})


def reverse(x, axis, name=None):
    """x with the order along `axis`, an int or a list of them, turned round. Op flip."""
    check_variable(x, "x", "reverse")
    return LayerHelper("reverse", name=name).apply("flip", {"X": x}, {"axis": _ints(axis)})


def cast(x, dtype, name=None):
    """x as another dtype. Op cast. Raises InvalidArgumentError."""
    check_variable(x, "x", "cast")
    out_dtype = dtype_enum(check_dtype(dtype, "dtype", "cast", ALL_DTYPES))
    attrs = {"in_dtype": int(dtype_enum(x.dtype)), "out_dtype": int(out_dtype)}
    return LayerHelper("cast", name=name).apply("cast", {"X": x}, attrs)


def expand(x, expand_times, name=None):
    """x, repeated expand_times[i] times along dim i; Variables of one element may be among these. Op tile."""
    check_variable(x, "x", "expand")
    helper = LayerHelper("expand", name=name)
    times = int_list(helper, expand_times, "expand_times")
    inputs = {"X": x, "RepeatTimes": times.tensor, "repeat_times_tensor": times.tensors or None}
    return helper.apply("tile", inputs, {"repeat_times": times.values})


def expand_as(x, target_tensor, name=None):
    """x, repeated along its dims of size 1 until it has the shape of target_tensor. Op expand_as_v2."""
    check_variable(x, "x", "expand_as")
    target = check_variable(target_tensor, "target_tensor", "expand_as")
    return LayerHelper("expand_as", name=name).apply(
        "expand_as_v2", {"X": x, "Y": target}, {"target_shape": list(target.shape)}
    )


def shape(input, name=None):
    """int32 [rank]: the dims that input has when the program runs. Op shape."""
    check_variable(input, "input", "shape")
    return LayerHelper("shape", name=name).apply("shape", {"Input": input}, stop_gradient=True)


def _ints(value):
    return [value] if isinstance(value, int) else list(value)
