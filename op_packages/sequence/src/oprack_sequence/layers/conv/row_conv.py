"""Layer of row_conv."""

from __future__ import annotations

from oprack.layers import LayerHelper, ParamAttrLike, Variable, check_variable
from oprack.types import FLOATS


def row_conv(
    input: Variable,
    future_context_size: int,
    param_attr: ParamAttrLike = None,
    act: str | None = None,
    name: str | None = None,
) -> Variable:
    """Row t of the result is the sum over i of input row t + i, weighted element by element with row i of the filter.

    input: [rows, D] with LoD, or [B, T, D]; the filter is [future_context_size + 1, D]. Op row_conv.
    """
    check_variable(input, "input", "row_conv", FLOATS)
    helper = LayerHelper("row_conv", act=act, name=name)
    w = helper.create_parameter(param_attr, [future_context_size + 1, input.shape[-1]], input.dtype)
    return helper.append_activation(helper.apply("row_conv", {"X": input, "Filter": w}))
