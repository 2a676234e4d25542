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
    """Appends op array_to_lod_tensor: undoes lod_tensor_to_array.

    Args:
        x: A tensor array.
        table: The rank table of lod_rank_table.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable with LoD.
    """
    inputs = {"X": array_variable(x, "array_to_lod_tensor"), "RankTable": _table_variable(table)}
    return LayerHelper("array_to_lod_tensor", name=name).apply("array_to_lod_tensor", inputs)


# Layer of lod_rank_table.
def lod_rank_table(x: Variable, level: int = 0, name: str | None = None) -> Variable:
    """Appends op lod_rank_table: the sequences of x at a LoD level, longest first.

    Args:
        x: A Variable with LoD.
        level: The LoD level.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        A rank table, for lod_tensor_to_array and its like.
    """
    check_variable(x, "x", "lod_rank_table")
    helper = LayerHelper("lod_rank_table", name=name)
    return helper.apply("lod_rank_table", {"X": x}, {"level": level}, stop_gradient=True)


# Layer of lod_tensor_to_array.
def lod_tensor_to_array(x: Variable, table: Variable, name: str | None = None) -> Variable:
    """Appends op lod_tensor_to_array: place t holds row t of each sequence that has one, longest sequence first.

    Args:
        x: A Variable with LoD.
        table: The rank table of lod_rank_table.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        A tensor array.
    """
    inputs = {"X": check_variable(x, "x", "lod_tensor_to_array"), "RankTable": _table_variable(table)}
    return LayerHelper("lod_tensor_to_array", name=name).apply("lod_tensor_to_array", inputs)


# Layer of max_sequence_len.
def max_sequence_len(rank_table: Variable, name: str | None = None) -> Variable:
    """Appends op max_sequence_len: the length of the longest sequence.

    Args:
        rank_table: The rank table of lod_rank_table.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of int64 [1].
    """
    helper = LayerHelper("max_sequence_len", name=name)
    return helper.apply("max_sequence_len", {"RankTable": _table_variable(rank_table)}, stop_gradient=True)


# Layer of reorder_lod_tensor_by_rank.
def reorder_lod_tensor_by_rank(x: Variable, rank_table: Variable, name: str | None = None) -> Variable:
    """Appends op reorder_lod_tensor_by_rank: the sequences (or rows) of x in the order of a rank table.

    Args:
        x: A Variable.
        rank_table: The rank table of lod_rank_table.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of the shape and dtype of x.
    """
    inputs = {"X": check_variable(x, "x", "reorder_lod_tensor_by_rank"), "RankTable": _table_variable(rank_table)}
    return LayerHelper("reorder_lod_tensor_by_rank", name=name).apply("reorder_lod_tensor_by_rank", inputs)


# Layer of shrink_rnn_memory.
def shrink_memory(x: Variable, i: Variable, table: Variable, name: str | None = None) -> Variable:
    """Appends op shrink_rnn_memory: the first rows of x, those of sequences longer than i.

    Args:
        x: A Variable with a row for each sequence, longest first.
        i: The step, an integer Variable of one element.
        table: The rank table of lod_rank_table.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable with fewer rows.
    """
    inputs = {
        "X": check_variable(x, "x", "shrink_memory"),
        "I": place_variable(i, "shrink_memory"),
        "RankTable": _table_variable(table),
    }
    return LayerHelper("shrink_memory", name=name).apply("shrink_rnn_memory", inputs)
