"""Layer of gru_unit."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, ParamAttrLike, Variable, check_variable
from oprack.types import FLOATS

from oprack_sequence.layers.recurrent._size import hidden_size

_ACTIVATIONS = {"identity": 0, "sigmoid": 1, "tanh": 2, "relu": 3}


def gru_unit(
    input: Variable,
    hidden: Variable,
    size: int,
    param_attr: ParamAttrLike = None,
    bias_attr: ParamAttrLike = None,
    activation: str = "tanh",
    gate_activation: str = "sigmoid",
    origin_mode: bool = False,
    name: str | None = None,
) -> tuple[Variable, Variable, Variable]:
    """One step of a GRU; returns (hidden [B, D], reset hidden [B, D], gates [B, 3 D]).

    input: [B, 3 D], hidden: [B, D], size: 3 D. param_attr: of the weight [D, 3 D]; bias_attr: of [1, 3 D], False for
    none. Activations: identity, sigmoid, tanh, relu. Op gru_unit. Raises InvalidArgumentError.
    """
    check_variable(input, "input", "gru_unit", FLOATS)
    check_variable(hidden, "hidden", "gru_unit", FLOATS)
    width = hidden_size(size, 3, "gru_unit")
    for argument, value in (("activation", activation), ("gate_activation", gate_activation)):
        if value not in _ACTIVATIONS:
            raise InvalidArgumentError(f"gru_unit: {argument} is {value!r}; expected one of {', '.join(_ACTIVATIONS)}")
    helper = LayerHelper("gru_unit", bias_attr=bias_attr, name=name)
    inputs = {
        "Input": input,
        "HiddenPrev": hidden,
        "Weight": helper.create_parameter(param_attr, [width, 3 * width], input.dtype),
    }
    if helper.bias_attr is not None:
        inputs["Bias"] = helper.create_parameter(bias_attr, [1, 3 * width], input.dtype, is_bias=True)
    attrs = {
        "activation": _ACTIVATIONS[activation],
        "gate_activation": _ACTIVATIONS[gate_activation],
        "origin_mode": origin_mode,
    }
    outs = {s: helper.create_variable_for_type_inference() for s in ("Hidden", "ResetHiddenPrev", "Gate")}
    helper.append_op("gru_unit", inputs, outs, attrs)
    return outs["Hidden"], outs["ResetHiddenPrev"], outs["Gate"]
