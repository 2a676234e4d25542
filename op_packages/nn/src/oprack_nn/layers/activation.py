"""Activations, made from their OpProtos: `relu(x, name=None)`, `leaky_relu(x, alpha=0.02, name=None)` ..."""

from __future__ import annotations

from oprack.layers import LayerHelper, check_variable, generated_layers

__getattr__ = generated_layers(
    "brelu",
    "celu",
    "elu",
    "gelu",
    "hard_shrink",
    "hard_sigmoid",
    "hard_swish",
    "leaky_relu",
    "log_softmax",
    "logsigmoid",
    "mish",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "soft_relu",
    "softplus",
    "softshrink",
    "softsign",
    "stanh",
    "swish",
    "tanh_shrink",
    "thresholded_relu",
    maxout="maxout",
)


def softmax(input, axis=-1, name=None):
    r"""$$Out = e^{x} / \sum e^{x}$$ along `axis`; input of any shape and floating dtype. Op softmax."""
    check_variable(input, "input", "softmax")
    return LayerHelper("softmax", name=name).apply("softmax", {"X": input}, {"axis": axis})


def prelu(x, mode, param_attr=None, name=None):
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
