"""The layer layer_norm."""

from __future__ import annotations

import math

from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, ParamAttrLike, Variable, check_variable

from oprack_nn.layers.norm._family import require_known, scale_and_shift


def layer_norm(
    input: Variable,
    scale: bool = True,
    shift: bool = True,
    begin_norm_axis: int = 1,
    epsilon: float = 1e-05,
    param_attr: ParamAttrLike = None,
    bias_attr: ParamAttrLike = None,
    act: str | None = None,
    name: str | None = None,
) -> Variable:
    r"""$$y = scale (x - \mu) / \sqrt{\sigma^2 + \epsilon} + shift$$ over the dims from begin_norm_axis on.

    scale, shift: whether there are such parameters, each of the size of these dims. Op layer_norm. Raises
    InvalidArgumentError.
    """
    check_variable(input, "input", "layer_norm")
    if not 0 < begin_norm_axis < len(input.shape):
        raise InvalidArgumentError(
            f"layer_norm: begin_norm_axis is {begin_norm_axis}, input has shape {list(input.shape)}; expected 1 to "
            f"{len(input.shape) - 1}"
        )
    dims = input.shape[begin_norm_axis:]
    require_known(input, dims, "layer_norm", f"the dims from {begin_norm_axis} on")
    attrs = {"epsilon": epsilon, "begin_norm_axis": begin_norm_axis}
    helper = LayerHelper(
        "layer_norm",
        param_attr=param_attr if scale else False,
        bias_attr=bias_attr if shift else False,
        act=act,
        name=name,
    )
    inputs = {"X": input, **scale_and_shift(helper, [math.prod(dims)], input.dtype)}
    return helper.append_activation(helper.apply("layer_norm", inputs, attrs))
