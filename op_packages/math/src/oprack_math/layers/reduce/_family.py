"""How layers of reductions are made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from oprack.layers import LayerHelper, Variable, check_variable

from oprack_math.layers._named import named, op_type_of


def reduce_layer(module: str, words: str, stop_gradient: bool = False) -> Callable[..., Any]:
    """The layer of the op after which `module` is named; words: what it gives."""
    op_type = op_type_of(module)

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
    return named(layer, module, doc)


def position_layer(module: str, name_of_layer: str, words: str) -> Callable[..., Any]:
    """The layer of the op after which `module` is named, under a name of its own; words: what it looks for."""
    op_type = op_type_of(module)

    def layer(x: Variable, axis: int = 0, name: str | None = None) -> Variable:
        check_variable(x, "x", name_of_layer)
        helper = LayerHelper(op_type, name=name)
        return helper.apply(op_type, {"X": x}, {"axis": axis}, stop_gradient=True)

    doc = f"int64 place of the {words} along `axis`; that dim is gone. Op {op_type}. Raises InvalidArgumentError."
    return named(layer, module, doc, name_of_layer)
