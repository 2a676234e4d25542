"""Layer of gather_nd."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable

from oprack_tensor.layers.index._index import index_variable


def gather_nd(input: Variable, index: Variable, name: str | None = None) -> Variable:
    """input[index[..., 0], index[..., 1], ...] for each place that the last dim of index holds. Op gather_nd."""
    inputs = {"X": check_variable(input, "input", "gather_nd"), "Index": index_variable(index, "gather_nd")}
    return LayerHelper("gather_nd", name=name).apply("gather_nd", inputs)
