"""Layer of stack."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.layers import LayerHelper, Variable

from oprack_tensor.layers.join._variables import variables


def stack(x: Sequence[Variable], axis: int = 0, name: str | None = None) -> Variable:
    """A list of variables of one shape along a new dim `axis`. Op stack."""
    return LayerHelper("stack", name=name).apply("stack", {"X": variables(x, "x", "stack")}, {"axis": axis})
