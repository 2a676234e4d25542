"""Layer of argsort."""

from __future__ import annotations

from oprack.layers import LayerHelper, check_variable


def argsort(input, axis=-1, descending=False, name=None):
    """(sorted values, int64 places) along `axis`. Op argsort."""
    check_variable(input, "input", "argsort")
    attrs = {"axis": axis, "descending": descending}
    values, places = LayerHelper("argsort", name=name).apply("argsort", {"X": input}, attrs)
    places.stop_gradient = True
    return values, places
