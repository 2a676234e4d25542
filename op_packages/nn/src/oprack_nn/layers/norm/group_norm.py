"""The layer group_norm."""

from __future__ import annotations

from oprack.layers import LayerHelper, ParamAttrLike, Variable, check_variable

from oprack_nn.layers.norm._family import require_known, scale_and_shift


def group_norm(
    input: Variable,
    groups: int,
    epsilon: float = 1e-05,
    param_attr: ParamAttrLike = None,
    bias_attr: ParamAttrLike = None,
    act: str | None = None,
    data_layout: str = "NCHW",
    name: str | None = None,
) -> Variable:
    """As layer_norm, over each group of a sample's channels; scale and shift are per channel. Op group_norm."""
    check_variable(input, "input", "group_norm")
    channels = input.shape[1 if data_layout == "NCHW" else -1]
    require_known(input, [channels], "group_norm", "the number of channels")
    helper = LayerHelper("group_norm", param_attr=param_attr, bias_attr=bias_attr, act=act, name=name)
    inputs = {"X": input, **scale_and_shift(helper, [channels], input.dtype)}
    attrs = {"epsilon": epsilon, "groups": groups, "data_layout": data_layout}
    return helper.append_activation(helper.apply("group_norm", inputs, attrs))
