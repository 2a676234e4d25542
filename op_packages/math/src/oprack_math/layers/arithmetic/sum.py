"""The layer of sum."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, Variable, check_variable


def sums(input: Sequence[Variable], out: Variable | None = None, name: str | None = None) -> Variable:
    """Element-wise sum of a list of variables of one shape and dtype; SelectedRows may be among them.

    out: a Variable that receives the result. Op sum. Raises InvalidArgumentError.
    """
    values = list(input) if isinstance(input, list | tuple) else [input]
    if not values:
        raise InvalidArgumentError("sums: input is empty; expected one variable or more")
    outs = None if out is None else {"Out": check_variable(out, "out", "sums")}
    values = [check_variable(v, "input", "sums") for v in values]
    return LayerHelper("sum", name=name).apply("sum", {"X": values}, outs=outs)
