"""Layer of reorder_lod_tensor_by_rank."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable

from oprack_control_flow.layers.rank_table._table import table_variable


def reorder_lod_tensor_by_rank(x: Variable, rank_table: Variable, name: str | None = None) -> Variable:
    """The sequences (or rows) of x in the order of a rank table. Op reorder_lod_tensor_by_rank."""
    inputs = {"X": check_variable(x, "x", "reorder_lod_tensor_by_rank"), "RankTable": table_variable(rank_table)}
    return LayerHelper("reorder_lod_tensor_by_rank", name=name).apply("reorder_lod_tensor_by_rank", inputs)
