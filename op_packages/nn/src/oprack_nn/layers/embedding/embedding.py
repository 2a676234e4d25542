"""The layer embedding."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, ParamAttrLike, Variable, check_variable


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
