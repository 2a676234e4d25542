"""Recurrent networks: over whole sequences, over padded batches, one step."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, ParamAttrLike, Variable, check_type, check_variable
from oprack.types import FLOATS


# The argument size of recurrent layers.
def _hidden_size(size: int, gates: int, layer: str) -> int:
    check_type(size, "size", layer, int)
    if size <= 0 or size % gates:
        raise InvalidArgumentError(f"{layer}: size is {size}; expected {gates} times the width of the hidden state")
    return size // gates


# Layer of gru.
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
    """Runs a gated recurrent unit over each sequence: op gru.

    Args:
        input: Rows [rows, 3 * size] with LoD, as an fc makes them of the words, floats.
        size: Size of the hidden state.
        param_attr: Attributes of the weight [size, 3 * size].
        bias_attr: Attributes of the bias [1, 3 * size]; False: none.
        is_reverse: Whether to go from the last row to the first.
        gate_activation: Activation of the gates: "sigmoid", "tanh", "relu" or "identity".
        candidate_activation: Activation of the new state, as gate_activation.
        h_0: The states before the first rows [sequences, size]; None: zeros.
        origin_mode: Whether the update gate keeps the old state, instead of letting the new one in.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        The hidden states [rows, size], with the LoD of input.

    Raises:
        InvalidArgumentError: input is no such Variable.
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


# Layer of gru_unit.
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
    """Runs one step of a gated recurrent unit: op gru_unit.

    Args:
        input: [B, 3 D], as an fc makes it of the words, floats.
        hidden: The state before [B, D].
        size: 3 D.
        param_attr: Attributes of the weight [D, 3 D].
        bias_attr: Attributes of the bias [1, 3 D]; False: none.
        activation: Activation of the new state: "identity", "sigmoid", "tanh" or "relu".
        gate_activation: Activation of the gates, as activation.
        origin_mode: Whether the update gate keeps the old state, instead of letting the new one in.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        (hidden [B, D], reset hidden [B, D], gates [B, 3 D]).

    Raises:
        InvalidArgumentError: size is no multiple of 3, or an activation is none of these.
    """
    check_variable(input, "input", "gru_unit", FLOATS)
    check_variable(hidden, "hidden", "gru_unit", FLOATS)
    width = _hidden_size(size, 3, "gru_unit")
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


# Layer of lstm.
def dynamic_lstm(
    input: Variable,
    size: int,
    h_0: Variable | None = None,
    c_0: Variable | None = None,
    param_attr: ParamAttrLike = None,
    bias_attr: ParamAttrLike = None,
    use_peepholes: bool = True,
    is_reverse: bool = False,
    gate_activation: str = "sigmoid",
    cell_activation: str = "tanh",
    candidate_activation: str = "tanh",
    name: str | None = None,
) -> tuple[Variable, Variable]:
    """Runs long short-term memory over each sequence: op lstm.

    Args:
        input: Rows [rows, 4 D] with LoD, as an fc makes them of the words, floats.
        size: 4 D.
        h_0: The states before the first rows [sequences, D], with c_0; None: zeros.
        c_0: The cells before the first rows [sequences, D], with h_0; None: zeros.
        param_attr: Attributes of the weight [D, 4 D].
        bias_attr: Attributes of the bias [1, 4 D], with use_peepholes [1, 7 D].
        use_peepholes: Whether the gates look at the cell.
        is_reverse: Whether to go from the last row to the first.
        gate_activation: Activation of the gates: "sigmoid", "tanh", "relu" or "identity".
        cell_activation: Activation of the cell, as gate_activation.
        candidate_activation: Activation of the new cell, as gate_activation.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        (hidden, cell), [rows, D] each, with the LoD of input.

    Raises:
        InvalidArgumentError: size is no multiple of 4, or input is no such Variable.
    """
    check_variable(input, "input", "dynamic_lstm", FLOATS)
    width = _hidden_size(size, 4, "dynamic_lstm")
    helper = LayerHelper("lstm", name=name)
    w = helper.create_parameter(param_attr, [width, 4 * width], input.dtype)
    b = helper.create_parameter(bias_attr, [1, (7 if use_peepholes else 4) * width], input.dtype, is_bias=True)
    attrs = {
        "use_peepholes": use_peepholes,
        "is_reverse": is_reverse,
        "gate_activation": gate_activation,
        "cell_activation": cell_activation,
        "candidate_activation": candidate_activation,
    }
    return helper.apply("lstm", {"Input": input, "H0": h_0, "C0": c_0, "Weight": w, "Bias": b}, attrs)


# Layer of lstm_unit.
def lstm_unit(
    x_t: Variable,
    hidden_t_prev: Variable,
    cell_t_prev: Variable,
    forget_bias: float = 0.0,
    param_attr: ParamAttrLike = None,
    bias_attr: ParamAttrLike = None,
    name: str | None = None,
) -> tuple[Variable, Variable]:
    """Runs one step of long short-term memory: ops concat, mul, elementwise_add and lstm_unit.

    Args:
        x_t: The input [B, M], floats.
        hidden_t_prev: The state before [B, D].
        cell_t_prev: The cell before [B, D].
        forget_bias: Added to the forget gate.
        param_attr: Attributes of the weight [M + D, 4 D].
        bias_attr: Attributes of the bias [4 D]; False: none.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        (hidden, cell), [B, D] each.

    Raises:
        InvalidArgumentError: An argument is no such Variable.
    """
    parts = {"x_t": x_t, "hidden_t_prev": hidden_t_prev, "cell_t_prev": cell_t_prev}
    for argument, value in parts.items():
        check_variable(value, argument, "lstm_unit", FLOATS)
    helper = LayerHelper("lstm_unit", bias_attr=bias_attr, name=name)
    width = cell_t_prev.shape[1]
    joined = helper.apply("concat", {"X": [x_t, hidden_t_prev]}, {"axis": 1})
    w = helper.create_parameter(param_attr, [joined.shape[1], 4 * width], x_t.dtype)
    gates = helper.append_bias_op(helper.apply("mul", {"X": joined, "Y": w}))
    cell, hidden = helper.apply("lstm_unit", {"X": gates, "C_prev": cell_t_prev}, {"forget_bias": float(forget_bias)})
    return hidden, cell


# Layer of lstmp.
def dynamic_lstmp(
    input: Variable,
    size: int,
    proj_size: int,
    param_attr: ParamAttrLike = None,
    bias_attr: ParamAttrLike = None,
    use_peepholes: bool = True,
    is_reverse: bool = False,
    gate_activation: str = "sigmoid",
    cell_activation: str = "tanh",
    candidate_activation: str = "tanh",
    proj_activation: str = "tanh",
    name: str | None = None,
    h_0: Variable | None = None,
    c_0: Variable | None = None,
    cell_clip: float | None = None,
    proj_clip: float | None = None,
) -> tuple[Variable, Variable]:
    """Runs long short-term memory with a projected hidden state over each sequence: op lstmp.

    Args:
        input: Rows [rows, 4 D] with LoD, as an fc makes them of the words, floats.
        size: 4 D.
        proj_size: Size of the projection.
        param_attr: Attributes of the weight [proj_size, 4 D] and of the projection [D, proj_size], which has its name
            with "_1".
        bias_attr: Attributes of the bias [1, 4 D], with use_peepholes [1, 7 D].
        use_peepholes: Whether the gates look at the cell.
        is_reverse: Whether to go from the last row to the first.
        gate_activation: Activation of the gates: "sigmoid", "tanh", "relu" or "identity".
        cell_activation: Activation of the cell, as gate_activation.
        candidate_activation: Activation of the new cell, as gate_activation.
        proj_activation: Activation of the projection, as gate_activation.
        name: Prefix of the names of what the layer makes; None: that of the layer.
        h_0: The projections before the first rows [sequences, proj_size], with c_0; None: zeros.
        c_0: The cells before the first rows [sequences, D], with h_0; None: zeros.
        cell_clip: Bound of the magnitude of cells; None: none.
        proj_clip: Bound of the magnitude of projections; None: none.

    Returns:
        (projection [rows, proj_size], cell [rows, D]), with the LoD of input.

    Raises:
        InvalidArgumentError: size is no multiple of 4, or input is no such Variable.
    """
    from oprack.layers.helper import shared_attr

    check_variable(input, "input", "dynamic_lstmp", FLOATS)
    width = _hidden_size(size, 4, "dynamic_lstmp")
    helper = LayerHelper("lstmp", name=name)
    inputs = {
        "Input": input,
        "H0": h_0,
        "C0": c_0,
        "Weight": helper.create_parameter(param_attr, [proj_size, 4 * width], input.dtype),
        "ProjWeight": helper.create_parameter(shared_attr(param_attr, 1), [width, proj_size], input.dtype),
        "Bias": helper.create_parameter(bias_attr, [1, (7 if use_peepholes else 4) * width], input.dtype, is_bias=True),
    }
    attrs = {
        "use_peepholes": use_peepholes,
        "is_reverse": is_reverse,
        "gate_activation": gate_activation,
        "cell_activation": cell_activation,
        "candidate_activation": candidate_activation,
        "proj_activation": proj_activation,
        "cell_clip": float(cell_clip or 0.0),
        "proj_clip": float(proj_clip or 0.0),
    }
    return helper.apply("lstmp", inputs, attrs)
