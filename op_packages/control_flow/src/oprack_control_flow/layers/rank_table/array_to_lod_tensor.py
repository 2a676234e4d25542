"""Layer of array_to_lod_tensor."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable

from oprack_control_flow.layers.array._arguments import array_variable
from oprack_control_flow.layers.rank_table._table import table_variable


def array_to_lod_tensor(x: Variable, table: Variable, name: str | None = None) -> Variable:
    """Undoes lod_tensor_to_array. Op array_to_lod_tensor."""
    inputs = {"X": array_variable(x, "array_to_lod_tensor"), "RankTable": table_variable(table)}
    return LayerHelper("array_to_lod_tensor", name=name).apply("array_to_lod_tensor", inputs)
