"""Layer of scatter_nd_add."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable

from oprack_tensor.layers.index._index import index_variable


def scatter_nd_add(ref: Variable, index: Variable, updates: Variable, name: str | None = None) -> Variable:
    """ref, with updates added at the places that the last dim of index holds. Op scatter_nd_add."""
    inputs = {
        "X": check_variable(ref, "ref", "scatter_nd_add"),
        "Index": index_variable(index, "scatter_nd_add"),
        "Updates": check_variable(updates, "updates", "scatter_nd_add"),
    }
    return LayerHelper("scatter_nd_add", name=name).apply("scatter_nd_add", inputs)
