"""The layer of increment."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable
from oprack.types import FLOATS


def increment(x: Variable, value: float = 1.0, in_place: bool = True) -> Variable:
    """x + value for x of one element; in_place: in x itself, so that a loop counts. Op increment."""
    check_variable(x, "x", "increment", FLOATS | {"int32", "int64"})
    outs = {"Out": x} if in_place else None
    return LayerHelper("increment").apply("increment", {"X": x}, {"step": float(value)}, outs=outs)
