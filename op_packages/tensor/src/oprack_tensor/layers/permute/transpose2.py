"""Layer of transpose2."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.layers import LayerHelper, Variable, check_variable


def transpose(x: Variable, perm: Sequence[int], name: str | None = None) -> Variable:
    """Dim i of the result is dim perm[i] of x. Op transpose2. Raises InvalidArgumentError."""
    check_variable(x, "x", "transpose")
    return LayerHelper("transpose", name=name).apply("transpose2", {"X": x}, {"axis": list(perm)})
