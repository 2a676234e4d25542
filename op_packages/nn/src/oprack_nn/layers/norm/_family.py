"""What layers of normalisations share."""

from __future__ import annotations

from collections.abc import Sequence

from oprack import initializer
from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, Parameter, Variable


def require_known(input: Variable, dims: Sequence[int], layer: str, what: str) -> None:
    """InvalidArgumentError unless the dims are known while the program is written."""
    if any(d <= 0 for d in dims):
        raise InvalidArgumentError(
            f"{layer}: input {input.name!r} has shape {list(input.shape)}; expected {what} to be known, so give data() "
            "its size"
        )


def scale_and_shift(helper: LayerHelper, shape: Sequence[int], dtype: object) -> dict[str, Parameter]:
    """Parameters Scale (ones) and Bias (zeros), each unless its attribute is False."""
    inputs = {}
    if helper.param_attr is not None:
        inputs["Scale"] = helper.create_parameter(
            helper.param_attr, shape, dtype, default_initializer=initializer.Constant(1.0)
        )
    if helper.bias_attr is not None:
        inputs["Bias"] = helper.create_parameter(helper.bias_attr, shape, dtype, is_bias=True)
    return inputs
