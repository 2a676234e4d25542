"""Tensors put together along a dim, and taken apart."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, Variable, check_variable, int_list


# Arguments that are lists of variables.
def _variables(value: Sequence[Variable], argument: str, layer: str) -> list[Variable]:
    values = list(value) if isinstance(value, list | tuple) else [value]
    if not values:
        raise InvalidArgumentError(f"{layer}: {argument} is empty; expected one variable or more")
    return [check_variable(v, argument, layer) for v in values]


# Layer of concat.
def concat(input: Sequence[Variable], axis: int = 0, name: str | None = None) -> Variable:
    """Appends op concat: Variables one after another along a dim.

    Args:
        input: Variables of one dtype, whose shapes agree but for the dim.
        axis: The dim, an int or an integer Variable of one element.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable with the sum of the sizes along axis.
    """
    helper = LayerHelper("concat", name=name)
    inputs, attrs = {"X": _variables(input, "input", "concat")}, {}
    if isinstance(axis, int):
        attrs["axis"] = axis
    else:
        inputs["AxisTensor"] = check_variable(axis, "axis", "concat", {"int32", "int64"})
    return helper.apply("concat", inputs, attrs)


# Layer of split.
def split(
    input: Variable, num_or_sections: Sequence[int] | int, dim: int = -1, name: str | None = None
) -> list[Variable]:
    """Appends op split: parts along a dim.

    Args:
        input: A Variable.
        num_or_sections: The number of parts, which are equal, or a list of their sizes, one of which may be -1.
        dim: The dim.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        List of Variables.

    Raises:
        InvalidArgumentError: The sizes do not fit.
    """
    check_variable(input, "input", "split")
    helper = LayerHelper("split", name=name)
    if dim < 0:
        dim += len(input.shape)  # Paddle's op takes no negative axis from a program
    if isinstance(num_or_sections, int):
        return helper.apply("split", {"X": input}, {"num": num_or_sections, "axis": dim}, num=num_or_sections)
    sections = int_list(helper, num_or_sections, "num_or_sections")
    inputs = {"X": input, "SectionsTensorList": sections.tensors or None}
    return helper.apply("split", inputs, {"sections": sections.values, "axis": dim}, num=len(sections.values))


# Layer of stack.
def stack(x: Sequence[Variable], axis: int = 0, name: str | None = None) -> Variable:
    """Appends op stack: Variables along a new dim.

    Args:
        x: Variables of one shape and dtype.
        axis: Where the new dim stands in the result.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable with one dim more.
    """
    return LayerHelper("stack", name=name).apply("stack", {"X": _variables(x, "x", "stack")}, {"axis": axis})


# Layer of unstack.
def unstack(x: Variable, axis: int = 0, num: int | None = None, name: str | None = None) -> list[Variable]:
    """Appends op unstack: the slices along a dim, which they lose.

    Args:
        x: A Variable.
        axis: The dim.
        num: The number of slices; None: the size of the dim, if it is known.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        List of Variables.

    Raises:
        InvalidArgumentError: The number is not known.
    """
    check_variable(x, "x", "unstack")
    if num is None:
        num = x.shape[axis]
    if num <= 0:
        raise InvalidArgumentError(f"unstack: dim {axis} of x has size {num} in {list(x.shape)}; pass num")
    return LayerHelper("unstack", name=name).apply("unstack", {"X": x}, {"axis": axis, "num": num}, num=num)
