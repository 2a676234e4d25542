"""Rows and sequences repeated for another LoD, and the LoD itself."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, Variable, check_variable


# Layers of lod_reset.
def lod_reset(
    x: Variable, y: Variable | None = None, target_lod: Sequence[int] | None = None, name: str | None = None
) -> Variable:
    """Appends op lod_reset: x with another LoD. One of y and target_lod has to be given.

    Args:
        x: A Variable.
        y: A Variable whose LoD to take, or whose values are offsets, int32.
        target_lod: Offsets, such as [0, 2, 5].
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of the shape and dtype of x.

    Raises:
        InvalidArgumentError: Not exactly one of them is given.
    """
    check_variable(x, "x", "lod_reset")
    if (y is None) == (target_lod is None):
        raise InvalidArgumentError("lod_reset: expected one of y and target_lod, a list of offsets such as [0, 2, 5]")
    attrs = None if target_lod is None else {"target_lod": list(target_lod)}
    return LayerHelper("lod_reset", name=name).apply("lod_reset", {"X": x, "Y": y}, attrs)


def lod_append(x: Variable, level: Sequence[int], name: str | None = None) -> Variable:
    """Appends op lod_reset: x with one more LoD level below its own.

    Args:
        x: A Variable.
        level: A Variable whose LoD to take, or offsets.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of the shape and dtype of x.
    """
    check_variable(x, "x", "lod_append")
    helper = LayerHelper("lod_append", name=name)
    if hasattr(level, "desc"):
        return helper.apply("lod_reset", {"X": x, "Y": level}, {"append": True})
    return helper.apply("lod_reset", {"X": x}, {"target_lod": list(level), "append": True})


# Layer of sequence_expand.
def sequence_expand(x: Variable, y: Variable | int, ref_level: int = -1, name: str | None = None) -> Variable:
    """Appends op sequence_expand: sequence (or row) i of x as often as sequence i of y has parts.

    Args:
        x: A Variable.
        y: A Variable with LoD.
        ref_level: The LoD level of y whose parts count; -1: the last.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of the dtype of x.
    """
    inputs = {"X": check_variable(x, "x", "sequence_expand"), "Y": check_variable(y, "y", "sequence_expand")}
    return LayerHelper("sequence_expand", name=name).apply("sequence_expand", inputs, {"ref_level": ref_level})


# Layer of sequence_expand_as.
def sequence_expand_as(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """Appends op sequence_expand_as: row i of x as often as sequence i of y has rows.

    Args:
        x: A Variable.
        y: A Variable with LoD.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of the dtype of x, with the LoD of y.
    """
    inputs = {"X": check_variable(x, "x", "sequence_expand_as"), "Y": check_variable(y, "y", "sequence_expand_as")}
    return LayerHelper("sequence_expand_as", name=name).apply("sequence_expand_as", inputs)
