"""The same elements in other dims, repeated where dims grow; and what the dims are."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.layers import LayerHelper, Variable, check_variable, int_list

from oprack_tensor.layers._ints import ints


# Layer of expand_as_v2.
def expand_as(x: Variable, target_tensor: Variable, name: str | None = None) -> Variable:
    """x, repeated along its dims of size 1 until it has the shape of target_tensor. Op expand_as_v2."""
    check_variable(x, "x", "expand_as")
    target = check_variable(target_tensor, "target_tensor", "expand_as")
    return LayerHelper("expand_as", name=name).apply(
        "expand_as_v2", {"X": x, "Y": target}, {"target_shape": list(target.shape)}
    )


# Layer of flatten2.
def flatten(x: Variable, axis: int = 1, name: str | None = None) -> Variable:
    """x as a matrix whose rows are the dims before `axis`. Op flatten2. Raises InvalidArgumentError."""
    check_variable(x, "x", "flatten")
    return LayerHelper("flatten", name=name).apply("flatten2", {"X": x}, {"axis": axis})


# Layer of reshape2.
def reshape(
    x: Variable,
    shape: Sequence[int | Variable],
    actual_shape: Variable | None = None,
    act: str | None = None,
    inplace: bool = False,
    name: str | None = None,
) -> Variable:
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


# Layer of shape.
def shape(input: Variable, name: str | None = None) -> Variable:
    """int32 [rank]: the dims that input has when the program runs. Op shape."""
    check_variable(input, "input", "shape")
    return LayerHelper("shape", name=name).apply("shape", {"Input": input}, stop_gradient=True)


# Layer of squeeze2.
def squeeze(input: Variable, axes: int | Sequence[int], name: str | None = None) -> Variable:
    """input without the dims `axes`, which have size 1; an empty list: without all such dims. Op squeeze2."""
    check_variable(input, "input", "squeeze")
    return LayerHelper("squeeze2", name=name).apply("squeeze2", {"X": input}, {"axes": ints(axes)})


# Layer of tile.
def expand(x: Variable, expand_times: Sequence[int], name: str | None = None) -> Variable:
    """x, repeated expand_times[i] times along dim i; Variables of one element may be among these. Op tile."""
    check_variable(x, "x", "expand")
    helper = LayerHelper("expand", name=name)
    times = int_list(helper, expand_times, "expand_times")
    inputs = {"X": x, "RepeatTimes": times.tensor, "repeat_times_tensor": times.tensors or None}
    return helper.apply("tile", inputs, {"repeat_times": times.values})


# Layer of unsqueeze2.
def unsqueeze(input: Variable, axes: int | Sequence[int], name: str | None = None) -> Variable:
    """input with dims of size 1 at `axes` of the result; Variables of one element may be among them. Op unsqueeze2."""
    check_variable(input, "input", "unsqueeze")
    helper = LayerHelper("unsqueeze2", name=name)
    dims = int_list(helper, axes, "axes")
    inputs = {"X": input, "AxesTensor": dims.tensor, "AxesTensorList": dims.tensors or None}
    return helper.apply("unsqueeze2", inputs, {"axes": dims.values if dims.known else None})
