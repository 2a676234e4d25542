"""Layer of assert."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.layers import LayerHelper, Variable, check_type, check_variable


def Assert(cond: Variable, data: Sequence[Variable] | None = None, summarize: int = 20, name: str | None = None):
    """When the program runs, an error that shows `data` (a list of Variables) unless cond, bool, is true. Op assert."""
    check_variable(cond, "cond", "Assert", {"bool"})
    check_type(data, "data", "Assert", (list, tuple, type(None)))
    helper = LayerHelper("assert", name=name)
    return helper.append_op("assert", {"Cond": cond, "Data": list(data or [])}, {}, {"summarize": summarize})
