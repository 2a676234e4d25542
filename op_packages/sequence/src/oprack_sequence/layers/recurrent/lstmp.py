"""Layer of lstmp."""

from __future__ import annotations

from oprack.layers import LayerHelper, ParamAttrLike, Variable, check_variable
from oprack.types import FLOATS

from oprack_sequence.layers.recurrent._size import hidden_size


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
    """dynamic_lstm whose hidden state is projected to `proj_size` before it goes on; returns (projection, cell).

    param_attr: of the weight [proj_size, 4 D] and of the projection [D, proj_size] (its name with "_1"). cell_clip,
    proj_clip: bounds of absolute values. Op lstmp. Raises InvalidArgumentError.
    """
    from oprack.layers.helper import shared_attr

    check_variable(input, "input", "dynamic_lstmp", FLOATS)
    width = hidden_size(size, 4, "dynamic_lstmp")
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
