"""Layer of argsort."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable


def argsort(
    input: Variable, axis: int = -1, descending: bool = False, name: str | None = None
) -> tuple[Variable, Variable]:
    """(sorted values, int64 places) along `axis`. Op argsort."""
    check_variable(input, "input", "argsort")
    attrs = {"axis": axis, "descending": descending}
    values, places = LayerHelper("argsort", name=name).apply("argsort", {"X": input}, attrs)
    places.stop_gradient = True
    return values, places
