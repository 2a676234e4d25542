"""Layer of unstack."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, Variable, check_variable


def unstack(x: Variable, axis: int = 0, num: int | None = None, name: str | None = None) -> list[Variable]:
    """A list of the parts of x along `axis`, that dim gone. num: how many, if its size is not known. Op unstack."""
    check_variable(x, "x", "unstack")
    if num is None:
        num = x.shape[axis]
    if num <= 0:
        raise InvalidArgumentError(f"unstack: dim {axis} of x has size {num} in {list(x.shape)}; pass num")
    return LayerHelper("unstack", name=name).apply("unstack", {"X": x}, {"axis": axis, "num": num}, num=num)
