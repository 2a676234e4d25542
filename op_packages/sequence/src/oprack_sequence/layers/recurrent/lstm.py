"""Layer of lstm."""

from __future__ import annotations

from oprack.layers import LayerHelper, ParamAttrLike, Variable, check_variable
from oprack.types import FLOATS

from oprack_sequence.layers.recurrent._size import hidden_size


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
    """LSTM over each sequence; returns (hidden, cell), [rows, D] each, with the LoD of input.

    input: [rows, 4 D] with LoD, what an fc of width `size` = 4 D makes of the words. h_0, c_0: [sequences, D], both or
    none. param_attr: of the weight [D, 4 D]; bias_attr: of [1, 4 D], or [1, 7 D] with use_peepholes, where the gates
    look at the cell. is_reverse: from the last row to the first. Op lstm. Raises InvalidArgumentError.
    """
    check_variable(input, "input", "dynamic_lstm", FLOATS)
    width = hidden_size(size, 4, "dynamic_lstm")
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
