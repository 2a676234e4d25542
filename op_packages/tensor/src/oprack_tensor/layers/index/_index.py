"""Arguments that are indices."""

from __future__ import annotations

from oprack.layers import check_variable


def index_variable(index, layer):
    return check_variable(index, "index", layer, {"int32", "int64"})
