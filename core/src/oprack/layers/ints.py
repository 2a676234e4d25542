"""Arguments that list ints of which some are known only when the program runs: shapes, starts and ends of slices."""

from __future__ import annotations

import numbers
from typing import Any, NamedTuple

from oprack.errors import InvalidArgumentError
from oprack.layers.append import errors_at_user_line
from oprack.layers.helper import LayerHelper
from oprack.layers.variable import Variable
from oprack.packs.vocabulary import op_for
from oprack.types import VarType


class IntList(NamedTuple):
    """A list of ints as ops take it: values with -1 for Variables, and one Variable for all or one for each."""

    values: list[int]
    tensor: Variable | None
    tensors: list[Variable]

    @property
    def known(self) -> bool:
        """Whether no Variable is among them."""
        return self.tensor is None and not self.tensors


def int_list(helper: LayerHelper, values: Any, argument: str) -> IntList:
    """An argument of a layer as IntList: a list of ints, of which some, or all at once, may be Variables.

    Among Variables each known int becomes a Variable as well.

    Args:
        helper: The layer's LayerHelper.
        values: The argument.
        argument: What the layer calls it.

    Returns:
        Values, and Variables where there are any.

    Raises:
        InvalidArgumentError: The argument is something else.
    """
    if isinstance(values, Variable):
        return IntList([], values, [])
    items = list(values) if isinstance(values, list | tuple) else [values]
    for item in items:
        if not isinstance(item, Variable | numbers.Integral) or isinstance(item, bool):
            with errors_at_user_line():
                raise InvalidArgumentError(
                    f"{helper.layer_type}: {argument} is {values!r}; expected a list of ints, of which some may be "
                    "integer Variables of one element, or one integer Variable"
                )
    known = [-1 if isinstance(v, Variable) else int(v) for v in items]
    if not any(isinstance(v, Variable) for v in items):
        return IntList(known, None, [])
    return IntList(known, None, [v if isinstance(v, Variable) else _constant(helper, int(v)) for v in items])


def _constant(helper: LayerHelper, value: int) -> Variable:
    attrs = {"shape": [1], "dtype": int(VarType.INT32), "value": float(value), "str_value": str(value)}
    return helper.apply(op_for("constant"), {}, attrs, stop_gradient=True)  # type: ignore[no-any-return]
