"""Layers of embeddings."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, ParamAttrLike, Variable, check_variable


# The layer embedding.
def embedding(
    input: Variable,
    size: Sequence[int] | int,
    is_sparse: bool = False,
    is_distributed: bool = False,
    padding_idx: int | None = None,
    param_attr: ParamAttrLike = None,
    dtype: object = "float32",
    name: str | None = None,
) -> Variable:
    """Look up rows of a trained table by id.

    Args:
        input: Integer ids, [..., 1] (op lookup_table) or [...] (op lookup_table_v2).
        size: [rows, width] of the table.
        is_sparse: Whether the table's gradient is SelectedRows, so that an update touches only the rows looked up.
        is_distributed: Attribute of that name.
        padding_idx: An id, counted from the end when negative, whose row is zeros and gets no gradient.
        param_attr: Attributes of the table.
        dtype: Its dtype.
        name: Name of the layer.

    Returns:
        [..., width], with the LoD of input.

    Raises:
        InvalidArgumentError: `size` is not [rows, width], or `padding_idx` is out of range.
    """
    check_variable(input, "input", "embedding", {"int16", "int32", "int64"} | {"uint8", "int8"})
    if not (isinstance(size, list | tuple) and len(size) == 2):
        raise InvalidArgumentError(f"embedding: size is {size!r}; expected [rows, width] of the table")
    rows = size[0]
    if padding_idx is not None and not -rows <= padding_idx < rows:
        raise InvalidArgumentError(f"embedding: padding_idx is {padding_idx}; expected {-rows} to {rows - 1}")
    padding = -1 if padding_idx is None else padding_idx % rows
    helper = LayerHelper("embedding", name=name)
    w = helper.create_parameter(param_attr, size, dtype)
    op_type = "lookup_table" if input.shape[-1:] == (1,) else "lookup_table_v2"
    attrs = {"is_sparse": is_sparse, "is_distributed": is_distributed, "padding_idx": padding}
    return helper.apply(op_type, {"Ids": input, "W": w}, attrs)


# The layer one_hot.
def one_hot(
    input: Variable, depth: Variable | int, allow_out_of_range: bool = False, name: str | None = None
) -> Variable:
    """Encodes integers as rows with a single 1: op one_hot_v2.

    Args:
        input: Integers [..., 1] or [...].
        depth: Length of a row, an int or an integer Variable of one element.
        allow_out_of_range: Whether other integers give zeros; False: an error.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of float32 [..., depth].

    Raises:
        InvalidArgumentError: An argument is no such Variable.
    """
    check_variable(input, "input", "one_hot", {"int32", "int64"})
    helper = LayerHelper("one_hot", name=name)
    if len(input.shape) > 1 and input.shape[-1] == 1:
        input = helper.apply("squeeze2", {"X": input}, {"axes": [-1]}, stop_gradient=True)
    inputs, attrs = {"X": input}, {"dtype": 5, "allow_out_of_range": allow_out_of_range}
    if isinstance(depth, int):
        attrs["depth"] = depth
    else:
        inputs["depth_tensor"] = check_variable(depth, "depth", "one_hot", {"int32", "int64"})
    return helper.apply("one_hot_v2", inputs, attrs, stop_gradient=True)
