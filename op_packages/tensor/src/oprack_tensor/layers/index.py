"""Parts of tensors by place, mask or range, and what is written there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from oprack.layers import LayerHelper, Variable, check_variable, int_list


# Arguments that are indices.
def _index_variable(index: Variable, layer: str) -> Variable:
    return check_variable(index, "index", layer, {"int32", "int64"})


# What slice and strided_slice take alike.
def _slice_by(
    op_type: str,
    input: Variable,
    axes: Sequence[int],
    places: Mapping[str, Sequence[int | Variable] | Variable],
    name: str | None,
) -> Variable:
    helper = LayerHelper(op_type, name=name)
    inputs: dict[str, Variable | list[Variable] | None] = {"Input": check_variable(input, "input", op_type)}
    attrs, flags = {"axes": list(axes)}, [1] * len(axes)
    for argument, value in places.items():
        given = int_list(helper, value, argument)
        slot = argument.capitalize()
        inputs |= {f"{slot}Tensor": given.tensor, f"{slot}TensorList": given.tensors or None}
        attrs[argument] = given.values if given.tensor is None else [-1] * len(axes)
        if given.tensor is not None:
            flags = [-1] * len(axes)
        elif given.tensors:
            flags = [-1 if hasattr(v, "desc") else f for v, f in zip(value, flags, strict=True)]
    return helper.apply(op_type, inputs, attrs | {"infer_flags": flags})


# Layer of gather.
def gather(input: Variable, index: Variable, overwrite: bool = True, name: str | None = None) -> Variable:
    """Appends op gather: rows of input by number.

    Args:
        input: A Variable.
        index: Row numbers [n] or [n, 1], int32 or int64.
        overwrite: Accepted for old programs: gradients of a row that is taken twice always add up.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable [n, ...] of the dtype of input.
    """
    inputs = {"X": check_variable(input, "input", "gather"), "Index": _index_variable(index, "gather")}
    return LayerHelper("gather", name=name).apply("gather", inputs)


# Layer of gather_nd.
def gather_nd(input: Variable, index: Variable, name: str | None = None) -> Variable:
    """Appends op gather_nd: input[index[..., 0], index[..., 1], ...] for each place that the last dim of index holds.

    Args:
        input: A Variable.
        index: Places [..., dims], int32 or int64.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of the dtype of input.
    """
    inputs = {"X": check_variable(input, "input", "gather_nd"), "Index": _index_variable(index, "gather_nd")}
    return LayerHelper("gather_nd", name=name).apply("gather_nd", inputs)


# Layer of scatter.
def scatter(
    input: Variable, index: Variable, updates: Variable, name: str | None = None, overwrite: bool = True
) -> Variable:
    """Appends op scatter: input, with some rows replaced.

    Args:
        input: A Variable.
        index: Row numbers [n], int32 or int64.
        updates: The new rows [n, ...].
        name: Prefix of the names of what the layer makes; None: that of the layer.
        overwrite: Whether the last of several updates of a row holds; False: a row is the sum of its updates.

    Returns:
        Variable of the shape and dtype of input.
    """
    inputs = {
        "X": check_variable(input, "input", "scatter"),
        "Ids": _index_variable(index, "scatter"),
        "Updates": check_variable(updates, "updates", "scatter"),
    }
    return LayerHelper("scatter", name=name).apply("scatter", inputs, {"overwrite": overwrite})


# Layer of scatter_nd_add.
def scatter_nd_add(ref: Variable, index: Variable, updates: Variable, name: str | None = None) -> Variable:
    """Appends op scatter_nd_add: ref, with updates added at places.

    Args:
        ref: A Variable.
        index: Places in its last dim, int32 or int64.
        updates: What is added at each place.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of the shape and dtype of ref.
    """
    inputs = {
        "X": check_variable(ref, "ref", "scatter_nd_add"),
        "Index": _index_variable(index, "scatter_nd_add"),
        "Updates": check_variable(updates, "updates", "scatter_nd_add"),
    }
    return LayerHelper("scatter_nd_add", name=name).apply("scatter_nd_add", inputs)


# Layer of slice.
def slice(
    input: Variable,
    axes: Sequence[int],
    starts: Sequence[int | Variable] | Variable,
    ends: Sequence[int | Variable] | Variable,
    name: str | None = None,
) -> Variable:
    """Appends op slice: input[..., starts[i]:ends[i], ...] along each dim axes[i].

    Args:
        input: A Variable.
        axes: The dims to cut.
        starts: The first place along each: ints, among which may be Variables of one element, or one Variable.
        ends: The place behind the last along each, in the same way.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of the dtype of input.

    Raises:
        InvalidArgumentError: The lists differ in length, or hold something else.
    """
    return _slice_by("slice", input, axes, {"starts": starts, "ends": ends}, name)


# Layer of strided_slice.
def strided_slice(
    input: Variable,
    axes: Sequence[int],
    starts: Sequence[int | Variable] | Variable,
    ends: Sequence[int | Variable] | Variable,
    strides: Sequence[int | Variable] | Variable,
    name: str | None = None,
) -> Variable:
    """Appends op strided_slice: as slice, with a step along each dim.

    Args:
        input: A Variable.
        axes: The dims to cut.
        starts: The first place along each: ints, among which may be Variables of one element, or one Variable.
        ends: The place behind the last along each, in the same way.
        strides: The step along each, in the same way; it may be negative.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of the dtype of input.
    """
    return _slice_by("strided_slice", input, axes, {"starts": starts, "ends": ends, "strides": strides}, name)


# Layer of where and where_index.
def where(
    condition: Variable, x: Variable | None = None, y: Variable | None = None, name: str | None = None
) -> Variable:
    """Chooses elements of x where a condition is true, and of y elsewhere.

    Op where, or where_index for the places alone.

    Args:
        condition: A Variable of bool.
        x: A Variable of the shape of condition.
        y: A Variable of the shape of condition.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of that shape; without x and y, int64 [n, rank], the places where condition is true.

    Raises:
        InvalidArgumentError: An argument is no such Variable.
    """
    check_variable(condition, "condition", "where", {"bool"})
    helper = LayerHelper("where", name=name)
    if x is None and y is None:
        return helper.apply("where_index", {"Condition": condition}, stop_gradient=True)
    inputs = {"Condition": condition, "X": check_variable(x, "x", "where"), "Y": check_variable(y, "y", "where")}
    return helper.apply("where", inputs)
