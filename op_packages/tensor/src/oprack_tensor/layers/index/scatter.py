"""Layer of scatter."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable

from oprack_tensor.layers.index._index import index_variable


def scatter(
    input: Variable, index: Variable, updates: Variable, name: str | None = None, overwrite: bool = True
) -> Variable:
    """input, with row index[i] replaced by row i of updates; overwrite False: rows named twice add up. Op scatter."""
    inputs = {
        "X": check_variable(input, "input", "scatter"),
        "Ids": index_variable(index, "scatter"),
        "Updates": check_variable(updates, "updates", "scatter"),
    }
    return LayerHelper("scatter", name=name).apply("scatter", inputs, {"overwrite": overwrite})
