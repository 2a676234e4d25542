"""Layer of lod_tensor_to_array."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable

from oprack_control_flow.layers.rank_table._table import table_variable


def lod_tensor_to_array(x: Variable, table: Variable, name: str | None = None) -> Variable:
    """Place t holds row t of each sequence that has one, longest sequence first. Op lod_tensor_to_array."""
    inputs = {"X": check_variable(x, "x", "lod_tensor_to_array"), "RankTable": table_variable(table)}
    return LayerHelper("lod_tensor_to_array", name=name).apply("lod_tensor_to_array", inputs)
