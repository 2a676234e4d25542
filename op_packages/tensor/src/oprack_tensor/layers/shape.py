"""The same elements in other dims, repeated where dims grow; and what the dims are."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.layers import LayerHelper, Variable, check_variable, int_list

from oprack_tensor.layers._ints import ints


# Layer of expand_as_v2.
def expand_as(x: Variable, target_tensor: Variable, name: str | None = None) -> Variable:
    """Appends op expand_as_v2: x broadcast to the shape of another Variable.

    Args:
        x: A Variable.
        target_tensor: The Variable whose shape to take.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of that shape and the dtype of x.
    """
    check_variable(x, "x", "expand_as")
    target = check_variable(target_tensor, "target_tensor", "expand_as")
    return LayerHelper("expand_as", name=name).apply(
        "expand_as_v2", {"X": x, "Y": target}, {"target_shape": list(target.shape)}
    )


# Layer of flatten2.
def flatten(x: Variable, axis: int = 1, name: str | None = None) -> Variable:
    """Appends op flatten2: x as a matrix.

    Args:
        x: A Variable.
        axis: The first dim that belongs to the columns; those before make up the rows.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of two dims.

    Raises:
        InvalidArgumentError: axis is out of range.
    """
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
    """Appends op reshape2: the elements in another shape.

    Args:
        x: A Variable.
        shape: The sizes: ints, among which may be Variables of one element, or one integer Variable. -1 (once) is what
            is left over, 0 the size of x there.
        actual_shape: An integer Variable that overrides shape when the program runs; None: none.
        act: The op that the result goes through, such as "relu"; None: none.
        inplace: Accepted for old programs: memory is shared whenever that is safe.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of that shape.

    Raises:
        InvalidArgumentError: The sizes do not fit.
    """
    check_variable(x, "x", "reshape")
    helper = LayerHelper("reshape2", name=name, act=act)
    dims = int_list(helper, shape, "shape")
    tensor = dims.tensor if actual_shape is None else check_variable(actual_shape, "actual_shape", "reshape")
    inputs = {"X": x, "Shape": tensor, "ShapeTensor": dims.tensors or None}
    return helper.append_activation(helper.apply("reshape2", inputs, {"shape": dims.values}))


# Layer of shape.
def shape(input: Variable, name: str | None = None) -> Variable:
    """Appends op shape: the sizes that input has when the program runs.

    Args:
        input: A Variable.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of int32 [rank].
    """
    check_variable(input, "input", "shape")
    return LayerHelper("shape", name=name).apply("shape", {"Input": input}, stop_gradient=True)


# Layer of squeeze2.
def squeeze(input: Variable, axes: int | Sequence[int], name: str | None = None) -> Variable:
    """Appends op squeeze2: dims of size 1 removed.

    Args:
        input: A Variable.
        axes: The dims, an int or a list; an empty list: all of size 1.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable with fewer dims.
    """
    check_variable(input, "input", "squeeze")
    return LayerHelper("squeeze2", name=name).apply("squeeze2", {"X": input}, {"axes": ints(axes)})


# Layer of tile.
def expand(x: Variable, expand_times: Sequence[int], name: str | None = None) -> Variable:
    """Appends op tile: x repeated along its dims.

    Args:
        x: A Variable.
        expand_times: How often along each dim: ints, among which may be Variables of one element, or one Variable.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of the repeated size.
    """
    check_variable(x, "x", "expand")
    helper = LayerHelper("expand", name=name)
    times = int_list(helper, expand_times, "expand_times")
    inputs = {"X": x, "RepeatTimes": times.tensor, "repeat_times_tensor": times.tensors or None}
    return helper.apply("tile", inputs, {"repeat_times": times.values})


# Layer of unsqueeze2.
def unsqueeze(input: Variable, axes: int | Sequence[int], name: str | None = None) -> Variable:
    """Appends op unsqueeze2: dims of size 1 inserted.

    Args:
        input: A Variable.
        axes: Their places in the result: an int, or a list among which may be Variables of one element.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable with more dims.
    """
    check_variable(input, "input", "unsqueeze")
    helper = LayerHelper("unsqueeze2", name=name)
    dims = int_list(helper, axes, "axes")
    inputs = {"X": input, "AxesTensor": dims.tensor, "AxesTensorList": dims.tensors or None}
    return helper.apply("unsqueeze2", inputs, {"axes": dims.values if dims.known else None})
