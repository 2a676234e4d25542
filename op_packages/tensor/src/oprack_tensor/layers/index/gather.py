"""Layer of gather."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable

from oprack_tensor.layers.index._index import index_variable


def gather(input: Variable, index: Variable, overwrite: bool = True, name: str | None = None) -> Variable:
    """Rows of input by number: index is int32 or int64 [n] or [n, 1]. Op gather.

    overwrite is accepted for old programs: gradients of a row that is taken twice always add up.
    """
    inputs = {"X": check_variable(input, "input", "gather"), "Index": index_variable(index, "gather")}
    return LayerHelper("gather", name=name).apply("gather", inputs)
