"""Layers of activations."""

from __future__ import annotations

from oprack.layers import LayerHelper, ParamAttrLike, Variable, check_variable


# The layer prelu.
def prelu(x: Variable, mode: str, param_attr: ParamAttrLike = None, name: str | None = None) -> Variable:
    """x where positive, else alpha * x with a learned alpha: one for `mode` "all", one for each channel (dim 1) for
    "channel", one for each element of a sample for "element". Default initializer: Constant(0.25).

    Op prelu. Raises InvalidArgumentError.
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
    r"""$$Out = e^{x} / \sum e^{x}$$ along `axis`; input of any shape and floating dtype. Op softmax."""
    check_variable(input, "input", "softmax")
    return LayerHelper("softmax", name=name).apply("softmax", {"X": input}, {"axis": axis})
