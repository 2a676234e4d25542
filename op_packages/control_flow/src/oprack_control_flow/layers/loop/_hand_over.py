"""The state of a loop, from round to round."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, Variable


def hand_over(helper: LayerHelper, values: Sequence[Variable], state: Sequence[Variable]) -> None:
    """Write values into the variables of a loop's state, at the end of its block, all at once."""
    pairs = [(value, var) for value, var in zip(values, state, strict=True) if value is not var]
    names = {var.name for _, var in pairs}
    # one state that becomes another's value must be read before it is written
    pairs = [(helper.apply("assign", {"X": value}) if value.name in names else value, var) for value, var in pairs]
    for value, var in pairs:
        if value.dtype != var.dtype:
            raise InvalidArgumentError(
                f"{helper.layer_type}: {var.dtype} state {var.name!r} would become {value.dtype} variable "
                f"{value.name!r}; expected one dtype, so cast it"
            )
        helper.apply("assign", {"X": value}, outs={"Out": var})
