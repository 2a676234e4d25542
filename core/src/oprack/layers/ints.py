"""Lists of ints as arguments of layers, some of them known only at run time: shapes, starts and ends of slices."""

from __future__ import annotations

import numbers
from typing import Any, NamedTuple

from oprack.errors import InvalidArgumentError
from oprack.layers.append import errors_at_user_line
from oprack.layers.helper import LayerHelper
from oprack.layers.variable import Variable
from oprack.packs import op_for
from oprack.types import VarType


class IntList(NamedTuple):
    """A list of ints in the forms in which ops accept it.

    Attributes:
        values: The ints, with -1 for those that Variables hold.
        tensor: One Variable that holds all of them; None if there is none.
        tensors: One Variable for each of them; empty if all are known.
    """

    values: list[int]
    tensor: Variable | None
    tensors: list[Variable]

    @property
    def known(self) -> bool:
        """Whether all values are known, without Variables."""
        return self.tensor is None and not self.tensors


def int_list(helper: LayerHelper, values: Any, argument: str) -> IntList:
    """Convert an argument of a layer: a list of ints and Variables, or one Variable for the whole list.

    Beside Variables, known ints become Variables as well, since ops take either one for each or none.

    Args:
        helper: The layer's LayerHelper.
        values: The argument.
        argument: Its name, for errors.

    Returns:
        The list in the forms that ops accept.

    Raises:
        InvalidArgumentError: The argument has another type.
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
