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
    inputs = {"Input": check_variable(input, "input", op_type)}
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
    """Rows of input by number: index is int32 or int64 [n] or [n, 1]. Op gather.

    overwrite is accepted for old programs: gradients of a row that is taken twice always add up.
    """
    inputs = {"X": check_variable(input, "input", "gather"), "Index": _index_variable(index, "gather")}
    return LayerHelper("gather", name=name).apply("gather", inputs)


# Layer of gather_nd.
def gather_nd(input: Variable, index: Variable, name: str | None = None) -> Variable:
    """input[index[..., 0], index[..., 1], ...] for each place that the last dim of index holds. Op gather_nd."""
    inputs = {"X": check_variable(input, "input", "gather_nd"), "Index": _index_variable(index, "gather_nd")}
    return LayerHelper("gather_nd", name=name).apply("gather_nd", inputs)


# Layer of scatter.
def scatter(
    input: Variable, index: Variable, updates: Variable, name: str | None = None, overwrite: bool = True
) -> Variable:
    """input, with row index[i] replaced by row i of updates; overwrite False: rows named twice add up. Op scatter."""
    inputs = {
        "X": check_variable(input, "input", "scatter"),
        "Ids": _index_variable(index, "scatter"),
        "Updates": check_variable(updates, "updates", "scatter"),
    }
    return LayerHelper("scatter", name=name).apply("scatter", inputs, {"overwrite": overwrite})


# Layer of scatter_nd_add.
def scatter_nd_add(ref: Variable, index: Variable, updates: Variable, name: str | None = None) -> Variable:
    """ref, with updates added at the places that the last dim of index holds. Op scatter_nd_add."""
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
    """input[..., starts[i]:ends[i], ...] along each dim axes[i]; Variables of one element may be among the places.

    Op slice. Raises InvalidArgumentError.
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
    """As slice, with a step along each dim, which may be negative. Op strided_slice."""
    return _slice_by("strided_slice", input, axes, {"starts": starts, "ends": ends, "strides": strides}, name)


# Layer of where and where_index.
def where(
    condition: Variable, x: Variable | None = None, y: Variable | None = None, name: str | None = None
) -> Variable:
    """x where condition, else y, all of one shape; without x and y: int64 [n, rank], the places where it is true.

    Ops where, where_index. Raises InvalidArgumentError.
    """
    check_variable(condition, "condition", "where", {"bool"})
    helper = LayerHelper("where", name=name)
    if x is None and y is None:
        return helper.apply("where_index", {"Condition": condition}, stop_gradient=True)
    inputs = {"Condition": condition, "X": check_variable(x, "x", "where"), "Y": check_variable(y, "y", "where")}
    return helper.apply("where", inputs)
