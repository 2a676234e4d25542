"""Layers of reductions over dims and of positions of extrema."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from oprack.layers import LayerHelper, Variable, check_variable

from oprack_math.layers._named import named

_REDUCED = """Appends op {op_type}: {words} over dims.

Args:
    input: A Variable.
    dim: The dims, an int or a list of them; None: all, which leaves shape ().
    keep_dim: Whether reduced dims stay, with size 1.
    name: Prefix of the names of what the layer makes; None: that of the layer.

Returns:
    Variable without these dims, or with size 1 there.

Raises:
    InvalidArgumentError: input is no Variable, or a dim is out of range.
"""
_PLACE = """Appends op {op_type}: the place of the {words} along a dim.

Args:
    x: A Variable of numbers.
    axis: The dim.
    name: Prefix of the names of what the layer makes; None: that of the layer.

Returns:
    Variable of int64 without that dim.

Raises:
    InvalidArgumentError: x is no Variable, or axis is out of range.
"""


# How layers of reductions are made.
def _reduce_layer(op_type: str, words: str, stop_gradient: bool = False) -> Callable[..., Any]:
    """The layer of the op `op_type`; words: what it gives."""

    def layer(
        input: Variable, dim: Sequence[int] | int | None = None, keep_dim: bool = False, name: str | None = None
    ) -> Variable:
        check_variable(input, "input", op_type)
        dims = [] if dim is None else list(dim) if isinstance(dim, list | tuple) else [dim]
        every = not dims or len(dims) == len(input.shape)
        attrs = {"dim": dims or [0], "keep_dim": keep_dim, "reduce_all": every}
        helper = LayerHelper(op_type, name=name)
        return helper.apply(op_type, {"X": input}, attrs, stop_gradient=stop_gradient)

    return named(layer, __name__, op_type, _REDUCED.format(op_type=op_type, words=words))


def _position_layer(op_type: str, name_of_layer: str, words: str) -> Callable[..., Any]:
    """The layer of the op `op_type`, under a name of its own; words: what it looks for."""

    def layer(x: Variable, axis: int = 0, name: str | None = None) -> Variable:
        check_variable(x, "x", name_of_layer)
        helper = LayerHelper(op_type, name=name)
        return helper.apply(op_type, {"X": x}, {"axis": axis}, stop_gradient=True)

    return named(layer, __name__, name_of_layer, _PLACE.format(op_type=op_type, words=words))


argmax = _position_layer("arg_max", "argmax", "largest element")


argmin = _position_layer("arg_min", "argmin", "smallest element")


reduce_all = _reduce_layer("reduce_all", "whether all elements are true", stop_gradient=True)


reduce_any = _reduce_layer("reduce_any", "whether any element is true", stop_gradient=True)


reduce_max = _reduce_layer("reduce_max", "the maximum")


reduce_mean = _reduce_layer("reduce_mean", "the mean")


reduce_min = _reduce_layer("reduce_min", "the minimum")


reduce_prod = _reduce_layer("reduce_prod", "the product")


reduce_sum = _reduce_layer("reduce_sum", "the sum")
