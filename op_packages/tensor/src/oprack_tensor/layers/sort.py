"""Order along a dim, the largest, and the different ones."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable


# Layer of argsort.
def argsort(
    input: Variable, axis: int = -1, descending: bool = False, name: str | None = None
) -> tuple[Variable, Variable]:
    """(sorted values, int64 places) along `axis`. Op argsort."""
    check_variable(input, "input", "argsort")
    attrs = {"axis": axis, "descending": descending}
    values, places = LayerHelper("argsort", name=name).apply("argsort", {"X": input}, attrs)
    places.stop_gradient = True
    return values, places


# Layer of top_k.
def topk(input: Variable, k: int, name: str | None = None) -> tuple[Variable, Variable]:
    """(values, int64 places) of the k largest elements along the last dim, largest first. Op top_k.

    k: an int, or an integer Variable of one element.
    """
    inputs, attrs = {"X": check_variable(input, "input", "topk")}, {}
    if isinstance(k, int):
        attrs["k"] = k
    else:
        inputs["K"] = check_variable(k, "k", "topk", {"int32", "int64"})
    values, places = LayerHelper("top_k", name=name).apply("top_k", inputs, attrs)
    places.stop_gradient = True
    return values, places
