"""Layer of shrink_rnn_memory."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable

from oprack_control_flow.layers.array._arguments import place_variable
from oprack_control_flow.layers.rank_table._table import table_variable


def shrink_memory(x: Variable, i: Variable, table: Variable, name: str | None = None) -> Variable:
    """The first rows of x, those of sequences longer than i. Op shrink_rnn_memory."""
    inputs = {
        "X": check_variable(x, "x", "shrink_memory"),
        "I": place_variable(i, "shrink_memory"),
        "RankTable": table_variable(table),
    }
    return LayerHelper("shrink_memory", name=name).apply("shrink_rnn_memory", inputs)
