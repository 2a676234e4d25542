"""Layers of activations."""

from __future__ import annotations

from oprack.layers import LayerHelper, ParamAttrLike, Variable, check_variable


# The layer prelu.
def prelu(x: Variable, mode: str, param_attr: ParamAttrLike = None, name: str | None = None) -> Variable:
    """Appends op prelu: x where it is positive, else alpha * x with a learned alpha.

    Args:
        x: A Variable of floats.
        mode: "all" for one alpha, "channel" for one per channel (dim 1), "element" for one per element of a sample.
        param_attr: Attributes of alpha, which starts from 0.25.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of the shape and dtype of x.

    Raises:
        InvalidArgumentError: mode is none of the three.
    """
    from oprack import initializer
    from oprack.errors import InvalidArgumentError

    check_variable(x, "x", "prelu")
    helper = LayerHelper("prelu", name=name)
    shapes = {"all": [1], "channel": [1, *x.shape[1:2], 1, 1], "element": [1, *x.shape[1:]]}
    if mode not in shapes:
        raise InvalidArgumentError(f"prelu: mode is {mode!r}; expected one of {', '.join(shapes)}")
    alpha = helper.create_parameter(param_attr, shapes[mode], x.dtype, default_initializer=initializer.Constant(0.25))
    return helper.apply("prelu", {"X": x, "Alpha": alpha}, {"mode": mode})


# The layer softmax.
def softmax(input: Variable, axis: int = -1, name: str | None = None) -> Variable:
    r"""Appends op softmax, $$e^{x} / \sum e^{x}$$ along a dim.

    Args:
        input: A Variable of floats, any shape.
        axis: The dim.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of the shape and dtype of input, whose elements along axis add up to 1.
    """
    check_variable(input, "input", "softmax")
    return LayerHelper("softmax", name=name).apply("softmax", {"X": input}, {"axis": axis})
