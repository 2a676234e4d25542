"""Order along a dim, the largest, and the different ones."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable


# Layer of argsort.
def argsort(
    input: Variable, axis: int = -1, descending: bool = False, name: str | None = None
) -> tuple[Variable, Variable]:
    """Appends op argsort: the elements along a dim in order.

    Args:
        input: A Variable of numbers.
        axis: The dim.
        descending: Whether the largest comes first.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        (sorted values, int64 places).
    """
    check_variable(input, "input", "argsort")
    attrs = {"axis": axis, "descending": descending}
    values, places = LayerHelper("argsort", name=name).apply("argsort", {"X": input}, attrs)
    places.stop_gradient = True
    return values, places


# Layer of top_k.
def topk(input: Variable, k: int, name: str | None = None) -> tuple[Variable, Variable]:
    """Appends op top_k: the k largest elements along the last dim, largest first.

    Args:
        input: A Variable of numbers.
        k: How many, an int or an integer Variable of one element.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        (values, int64 places), each [..., k].
    """
    inputs, attrs = {"X": check_variable(input, "input", "topk")}, {}
    if isinstance(k, int):
        attrs["k"] = k
    else:
        inputs["K"] = check_variable(k, "k", "topk", {"int32", "int64"})
    values, places = LayerHelper("top_k", name=name).apply("top_k", inputs, attrs)
    places.stop_gradient = True
    return values, places
