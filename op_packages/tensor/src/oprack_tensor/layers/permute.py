"""The same elements in another order."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.layers import LayerHelper, Variable, check_variable

from oprack_tensor.layers._ints import ints


# Layer of flip.
def reverse(x: Variable, axis: int, name: str | None = None) -> Variable:
    """Appends op flip: the order of elements along dims turned round.

    Args:
        x: A Variable.
        axis: The dim, an int or a list of them.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of the shape and dtype of x.
    """
    check_variable(x, "x", "reverse")
    return LayerHelper("reverse", name=name).apply("flip", {"X": x}, {"axis": ints(axis)})


# Layer of transpose2.
def transpose(x: Variable, perm: Sequence[int], name: str | None = None) -> Variable:
    """Appends op transpose2: dim i of the result is dim perm[i] of x.

    Args:
        x: A Variable.
        perm: The dims of x in their new order.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable with reordered dims.

    Raises:
        InvalidArgumentError: perm is no order of the dims.
    """
    check_variable(x, "x", "transpose")
    return LayerHelper("transpose", name=name).apply("transpose2", {"X": x}, {"axis": list(perm)})
