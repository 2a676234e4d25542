"""What may be given to an optimizer as its learning rate."""

from __future__ import annotations

import math
from typing import Any

from oprack.errors import InvalidArgumentError
from oprack.layers import Variable


def checked_rate(rate: Any, owner: str) -> Any:
    """A learning rate as an optimizer keeps it: a float, a scheduler or a Variable.

    Args:
        rate: What the user gave.
        owner: The optimizer, for messages.

    Raises:
        InvalidArgumentError: It is none of these, or no finite number.
    """
    if isinstance(rate, Variable) or (callable(rate) and hasattr(rate, "state_dict")):
        return rate
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not math.isfinite(rate):
        raise InvalidArgumentError(
            f"{owner}: learning_rate is {rate!r}; expected a finite number, a scheduler of oprack.optimizer.lr or a "
            "Variable"
        )
    return float(rate)
