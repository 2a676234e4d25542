"""One row for each sequence or segment."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, Variable, check_variable

# Layers of sequence_pool.
_POOLS = ("average", "sum", "sqrt", "max", "last", "first")


def sequence_pool(
    input: Variable, pool_type: str, is_test: bool = False, pad_value: float = 0.0, name: str | None = None
) -> Variable:
    """One row for each sequence: its rows' "average", "sum", "sqrt" (sum / sqrt(length)), "max", "last" or "first".

    An empty sequence gives pad_value. The innermost LoD level is gone. is_test: "max" keeps no places for the gradient.
    Op sequence_pool. Raises InvalidArgumentError.
    """
    check_variable(input, "input", "sequence_pool")
    if str(pool_type).lower() not in _POOLS:
        raise InvalidArgumentError(f"sequence_pool: pool_type is {pool_type!r}; expected one of {', '.join(_POOLS)}")
    attrs = {"pooltype": pool_type.upper(), "is_test": is_test, "pad_value": float(pad_value)}
    return LayerHelper("sequence_pool", name=name).apply("sequence_pool", {"X": input}, attrs)


def sequence_first_step(input: Variable, name: str | None = None) -> Variable:
    """The first row of each sequence; see sequence_pool."""
    return sequence_pool(input, "first", name=name)


def sequence_last_step(input: Variable, name: str | None = None) -> Variable:
    """The last row of each sequence; see sequence_pool."""
    return sequence_pool(input, "last", name=name)
