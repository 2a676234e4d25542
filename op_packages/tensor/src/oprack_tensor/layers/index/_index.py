"""Arguments that are indices."""

from __future__ import annotations

from oprack.layers import Variable, check_variable


def index_variable(index: Variable, layer: str) -> Variable:
    return check_variable(index, "index", layer, {"int32", "int64"})
