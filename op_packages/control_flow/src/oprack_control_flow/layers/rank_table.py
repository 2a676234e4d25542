"""Sequences ordered by length, for loops over their places."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, Variable, check_variable
from oprack.types import VarType

from oprack_control_flow.layers.array import _array_variable as array_variable
from oprack_control_flow.layers.array import _place_variable as place_variable


# Arguments that are rank tables.
def _table_variable(value: Variable) -> Variable:
    check_variable(value, "rank_table", "rank table")
    if value.type is not VarType.LOD_RANK_TABLE:
        raise InvalidArgumentError(
            f"variable {value.name!r} is a {value.type.name}; expected a rank table made by layers.lod_rank_table"
        )
    return value


# Layer of array_to_lod_tensor.
def array_to_lod_tensor(x: Variable, table: Variable, name: str | None = None) -> Variable:
    """Undoes lod_tensor_to_array. Op array_to_lod_tensor."""
    inputs = {"X": array_variable(x, "array_to_lod_tensor"), "RankTable": _table_variable(table)}
    return LayerHelper("array_to_lod_tensor", name=name).apply("array_to_lod_tensor", inputs)


# Layer of lod_rank_table.
def lod_rank_table(x: Variable, level: int = 0, name: str | None = None) -> Variable:
    """The sequences of x at a LoD level, longest first, for the layers below. Op lod_rank_table."""
    check_variable(x, "x", "lod_rank_table")
    helper = LayerHelper("lod_rank_table", name=name)
    return helper.apply("lod_rank_table", {"X": x}, {"level": level}, stop_gradient=True)


# Layer of lod_tensor_to_array.
def lod_tensor_to_array(x: Variable, table: Variable, name: str | None = None) -> Variable:
    """Place t holds row t of each sequence that has one, longest sequence first. Op lod_tensor_to_array."""
    inputs = {"X": check_variable(x, "x", "lod_tensor_to_array"), "RankTable": _table_variable(table)}
    return LayerHelper("lod_tensor_to_array", name=name).apply("lod_tensor_to_array", inputs)


# Layer of max_sequence_len.
def max_sequence_len(rank_table: Variable, name: str | None = None) -> Variable:
    """int64 [1]: length of the longest sequence. Op max_sequence_len."""
    helper = LayerHelper("max_sequence_len", name=name)
    return helper.apply("max_sequence_len", {"RankTable": _table_variable(rank_table)}, stop_gradient=True)


# Layer of reorder_lod_tensor_by_rank.
def reorder_lod_tensor_by_rank(x: Variable, rank_table: Variable, name: str | None = None) -> Variable:
    """The sequences (or rows) of x in the order of a rank table. Op reorder_lod_tensor_by_rank."""
    inputs = {"X": check_variable(x, "x", "reorder_lod_tensor_by_rank"), "RankTable": _table_variable(rank_table)}
    return LayerHelper("reorder_lod_tensor_by_rank", name=name).apply("reorder_lod_tensor_by_rank", inputs)


# Layer of shrink_rnn_memory.
def shrink_memory(x: Variable, i: Variable, table: Variable, name: str | None = None) -> Variable:
    """The first rows of x, those of sequences longer than i. Op shrink_rnn_memory."""
    inputs = {
        "X": check_variable(x, "x", "shrink_memory"),
        "I": place_variable(i, "shrink_memory"),
        "RankTable": _table_variable(table),
    }
    return LayerHelper("shrink_memory", name=name).apply("shrink_rnn_memory", inputs)
