"""The same elements in another order."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.layers import LayerHelper, Variable, check_variable

from oprack_tensor.layers._ints import ints


# Layer of flip.
def reverse(x: Variable, axis: int, name: str | None = None) -> Variable:
    """x with the order along `axis`, an int or a list of them, turned round. Op flip."""
    check_variable(x, "x", "reverse")
    return LayerHelper("reverse", name=name).apply("flip", {"X": x}, {"axis": ints(axis)})


# Layer of transpose2.
def transpose(x: Variable, perm: Sequence[int], name: str | None = None) -> Variable:
    """Dim i of the result is dim perm[i] of x. Op transpose2. Raises InvalidArgumentError."""
    check_variable(x, "x", "transpose")
    return LayerHelper("transpose", name=name).apply("transpose2", {"X": x}, {"axis": list(perm)})
