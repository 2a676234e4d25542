"""Layer of lod_rank_table."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable


def lod_rank_table(x: Variable, level: int = 0, name: str | None = None) -> Variable:
    """The sequences of x at a LoD level, longest first, for the layers below. Op lod_rank_table."""
    check_variable(x, "x", "lod_rank_table")
    helper = LayerHelper("lod_rank_table", name=name)
    return helper.apply("lod_rank_table", {"X": x}, {"level": level}, stop_gradient=True)
