"""Layer of expand_as_v2."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable


def expand_as(x: Variable, target_tensor: Variable, name: str | None = None) -> Variable:
    """x, repeated along its dims of size 1 until it has the shape of target_tensor. Op expand_as_v2."""
    check_variable(x, "x", "expand_as")
    target = check_variable(target_tensor, "target_tensor", "expand_as")
    return LayerHelper("expand_as", name=name).apply(
        "expand_as_v2", {"X": x, "Y": target}, {"target_shape": list(target.shape)}
    )
