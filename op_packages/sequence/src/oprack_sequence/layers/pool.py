"""One row for each sequence or segment."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, Variable, check_variable

# Layers of sequence_pool.
_POOLS = ("average", "sum", "sqrt", "max", "last", "first")


def sequence_pool(
    input: Variable, pool_type: str, is_test: bool = False, pad_value: float = 0.0, name: str | None = None
) -> Variable:
    """Appends op sequence_pool: one row for each sequence. The innermost LoD level is gone.

    Args:
        input: Rows with LoD [rows, ...].
        pool_type: "average", "sum", "sqrt" (the sum divided by the root of the length), "max", "last" or "first".
        is_test: Whether no gradient follows, so that "max" keeps no places.
        pad_value: What an empty sequence gives.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable [sequences, ...].

    Raises:
        InvalidArgumentError: pool_type is none of these.
    """
    check_variable(input, "input", "sequence_pool")
    if str(pool_type).lower() not in _POOLS:
        raise InvalidArgumentError(f"sequence_pool: pool_type is {pool_type!r}; expected one of {', '.join(_POOLS)}")
    attrs = {"pooltype": pool_type.upper(), "is_test": is_test, "pad_value": float(pad_value)}
    return LayerHelper("sequence_pool", name=name).apply("sequence_pool", {"X": input}, attrs)


def sequence_first_step(input: Variable, name: str | None = None) -> Variable:
    """Takes the first row of each sequence; see sequence_pool.

    Args:
        input: Rows with LoD [rows, ...].
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable [sequences, ...].
    """
    return sequence_pool(input, "first", name=name)


def sequence_last_step(input: Variable, name: str | None = None) -> Variable:
    """Takes the last row of each sequence; see sequence_pool.

    Args:
        input: Rows with LoD [rows, ...].
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable [sequences, ...].
    """
    return sequence_pool(input, "last", name=name)
