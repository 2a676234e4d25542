"""Layers of reductions over dims and of positions of extrema."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from oprack.layers import LayerHelper, Variable, check_variable

from oprack_math.layers._named import named


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

    doc = (
        f"{words} along `dim`, an int or a list of them (None: all, which leaves shape ()).\n\n    keep_dim: leave "
        f"these dims with size 1. Op {op_type}. Raises InvalidArgumentError for a dim that is out of range."
    )
    return named(layer, __name__, op_type, doc)


def _position_layer(op_type: str, name_of_layer: str, words: str) -> Callable[..., Any]:
    """The layer of the op `op_type`, under a name of its own; words: what it looks for."""

    def layer(x: Variable, axis: int = 0, name: str | None = None) -> Variable:
        check_variable(x, "x", name_of_layer)
        helper = LayerHelper(op_type, name=name)
        return helper.apply(op_type, {"X": x}, {"axis": axis}, stop_gradient=True)

    doc = f"int64 place of the {words} along `axis`; that dim is gone. Op {op_type}. Raises InvalidArgumentError."
    return named(layer, __name__, name_of_layer, doc)


argmax = _position_layer("arg_max", "argmax", "largest element")


argmin = _position_layer("arg_min", "argmin", "smallest element")


reduce_all = _reduce_layer("reduce_all", "Whether all elements are true", stop_gradient=True)


reduce_any = _reduce_layer("reduce_any", "Whether any element is true", stop_gradient=True)


reduce_max = _reduce_layer("reduce_max", "Maximum")


reduce_mean = _reduce_layer("reduce_mean", "Mean")


reduce_min = _reduce_layer("reduce_min", "Minimum")


reduce_prod = _reduce_layer("reduce_prod", "Product")


reduce_sum = _reduce_layer("reduce_sum", "Sum")
