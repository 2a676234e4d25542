"""Layers of lod_reset."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, Variable, check_variable


def lod_reset(
    x: Variable, y: Variable | None = None, target_lod: Sequence[int] | None = None, name: str | None = None
) -> Variable:
    """x with another LoD: that of y (or the int32 offsets that y holds), or the offsets target_lod. Op lod_reset."""
    check_variable(x, "x", "lod_reset")
    if (y is None) == (target_lod is None):
        raise InvalidArgumentError("lod_reset: expected one of y and target_lod, a list of offsets such as [0, 2, 5]")
    attrs = None if target_lod is None else {"target_lod": list(target_lod)}
    return LayerHelper("lod_reset", name=name).apply("lod_reset", {"X": x, "Y": y}, attrs)


def lod_append(x: Variable, level: Sequence[int], name: str | None = None) -> Variable:
    """x with one more LoD level below: the LoD of Variable `level`, or a list of offsets. Op lod_reset."""
    check_variable(x, "x", "lod_append")
    helper = LayerHelper("lod_append", name=name)
    if hasattr(level, "desc"):
        return helper.apply("lod_reset", {"X": x, "Y": level}, {"append": True})
    return helper.apply("lod_reset", {"X": x}, {"target_lod": list(level), "append": True})
