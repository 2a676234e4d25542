"""The layer instance_norm."""

from __future__ import annotations

from oprack.layers import LayerHelper, ParamAttrLike, Variable, check_variable

from oprack_nn.layers.norm._family import require_known, scale_and_shift


def instance_norm(
    input: Variable,
    epsilon: float = 1e-05,
    param_attr: ParamAttrLike = None,
    bias_attr: ParamAttrLike = None,
    name: str | None = None,
) -> Variable:
    """As batch_norm in training, over each channel of each sample; no moving statistics. Op instance_norm."""
    check_variable(input, "input", "instance_norm")
    require_known(input, input.shape[1:2], "instance_norm", "the number of channels")
    helper = LayerHelper("instance_norm", param_attr=param_attr, bias_attr=bias_attr, name=name)
    inputs = {"X": input, **scale_and_shift(helper, list(input.shape[1:2]), input.dtype)}
    return helper.apply("instance_norm", inputs, {"epsilon": epsilon})
