"""Layer of add_position_encoding."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable
from oprack.types import FLOATS


def add_position_encoding(input: Variable, alpha: float, beta: float, name: str | None = None) -> Variable:
    """alpha * input + beta * sines and cosines of the place in the sequence; [B, T, D], or [rows, D] with LoD.

    Op add_position_encoding.
    """
    input = check_variable(input, "input", "add_position_encoding", FLOATS)
    attrs = {"alpha": float(alpha), "beta": float(beta)}
    return LayerHelper("add_position_encoding", name=name).apply("add_position_encoding", {"X": input}, attrs)
