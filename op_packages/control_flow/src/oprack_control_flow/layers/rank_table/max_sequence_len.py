"""Layer of max_sequence_len."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable

from oprack_control_flow.layers.rank_table._table import table_variable


def max_sequence_len(rank_table: Variable, name: str | None = None) -> Variable:
    """int64 [1]: length of the longest sequence. Op max_sequence_len."""
    helper = LayerHelper("max_sequence_len", name=name)
    return helper.apply("max_sequence_len", {"RankTable": table_variable(rank_table)}, stop_gradient=True)
