"""Layers of dropout."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, Variable, check_variable
from oprack.types import FLOATS, HALF_FLOATS


# The layer dropout.
def dropout(
    x: Variable,
    dropout_prob: float,
    is_test: bool = False,
    seed: int | None = None,
    name: str | None = None,
    dropout_implementation: str = "downgrade_in_infer",
) -> Variable:
    """Appends op dropout: in training, elements become 0 at random.

    `program.clone(for_test=True)` sets is_test.

    Args:
        x: A Variable of floats.
        dropout_prob: The probability of 0, from 0 to 1.
        is_test: Whether nothing is dropped.
        seed: Seed of the generator; None: that of the executor.
        name: Prefix of the names of what the layer makes; None: that of the layer.
        dropout_implementation: "downgrade_in_infer" multiplies by 1 - dropout_prob if is_test; "upscale_in_train"
            divides by it in training instead.

    Returns:
        Variable of the shape and dtype of x.

    Raises:
        InvalidArgumentError: dropout_prob is no probability, or dropout_implementation is neither of the two.
    """
    check_variable(x, "x", "dropout", FLOATS | HALF_FLOATS)
    kinds = ("downgrade_in_infer", "upscale_in_train")
    if not 0 <= dropout_prob <= 1 or dropout_implementation not in kinds:
        raise InvalidArgumentError(
            f"dropout: dropout_prob is {dropout_prob!r} and dropout_implementation {dropout_implementation!r}; "
            f"expected a probability and one of {', '.join(kinds)}"
        )
    attrs = {
        "dropout_prob": float(dropout_prob),
        "is_test": is_test,
        "fix_seed": seed is not None,
        "seed": seed or 0,
        "dropout_implementation": dropout_implementation,
    }
    return LayerHelper("dropout", name=name).apply("dropout", {"X": x}, attrs)
