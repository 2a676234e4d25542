"""Layer of gru."""

from __future__ import annotations

from oprack.layers import LayerHelper, ParamAttrLike, Variable, check_variable
from oprack.types import FLOATS


def dynamic_gru(
    input: Variable,
    size: int,
    param_attr: ParamAttrLike = None,
    bias_attr: ParamAttrLike = None,
    is_reverse: bool = False,
    gate_activation: str = "sigmoid",
    candidate_activation: str = "tanh",
    h_0: Variable | None = None,
    origin_mode: bool = False,
    name: str | None = None,
) -> Variable:
    """GRU over each sequence; returns the hidden states [rows, size] with the LoD of input.

    input: [rows, 3 size] with LoD, what an fc makes of the words. h_0: [sequences, size]. param_attr: of the weight
    [size, 3 size]; bias_attr: of [1, 3 size], False for none. origin_mode: the update gate keeps the old state, instead
    of letting the new one in. Op gru. Raises InvalidArgumentError.
    """
    check_variable(input, "input", "dynamic_gru", FLOATS)
    helper = LayerHelper("gru", bias_attr=bias_attr, name=name)
    inputs = {"Input": input, "H0": h_0, "Weight": helper.create_parameter(param_attr, [size, 3 * size], input.dtype)}
    if helper.bias_attr is not None:
        inputs["Bias"] = helper.create_parameter(bias_attr, [1, 3 * size], input.dtype, is_bias=True)
    attrs = {
        "is_reverse": is_reverse,
        "gate_activation": gate_activation,
        "activation": candidate_activation,
        "origin_mode": origin_mode,
    }
    return helper.apply("gru", inputs, attrs)
