"""Element-wise functions of one variable, made from their OpProtos."""

from __future__ import annotations

from oprack.layers import LayerHelper, check_variable, generated_layers
from oprack.types import FLOATS, HALF_FLOATS, INTEGERS

__getattr__ = generated_layers(
    "abs",
    "ceil",
    "cos",
    "erf",
    "exp",
    "floor",
    "log",
    "reciprocal",
    "round",
    "rsqrt",
    "sign",
    "sin",
    "sqrt",
    "square",
    "tanh",
    mean="mean",
    clip_by_norm="clip_by_norm",
    cumsum="cumsum",
)
_NUMBERS = FLOATS | HALF_FLOATS | INTEGERS


def scale(x, scale=1.0, bias=0.0, bias_after_scale=True, act=None, name=None):
    """scale * x + bias, or with bias_after_scale False scale * (x + bias); x of any shape and number dtype.

    scale: a number, or a Variable of one element. Op scale. Raises InvalidArgumentError.
    """
    check_variable(x, "x", "scale", _NUMBERS)
    helper = LayerHelper("scale", name=name, act=act)
    inputs, attrs = {"X": x}, {"bias": float(bias), "bias_after_scale": bias_after_scale}
    if isinstance(scale, int | float):
        attrs["scale"] = float(scale)
    else:
        inputs["ScaleTensor"] = check_variable(scale, "scale", "scale", _NUMBERS)
    return helper.append_activation(helper.apply("scale", inputs, attrs))


def pow(x, factor=1.0, name=None):
    """x to the power of `factor`, a number or a Variable of one element. Op pow. Raises InvalidArgumentError."""
    check_variable(x, "x", "pow", _NUMBERS)
    helper = LayerHelper("pow", name=name)
    if isinstance(factor, int | float):
        return helper.apply("pow", {"X": x}, {"factor": float(factor)})
    return helper.apply("pow", {"X": x, "FactorTensor": check_variable(factor, "factor", "pow")})


def clip(x, min, max, name=None):
    """x, with values outside `min` to `max` replaced by these, each a number or a Variable of one element. Op clip."""
    check_variable(x, "x", "clip", _NUMBERS)
    inputs, attrs = {"X": x}, {}
    for slot, value in (("Min", min), ("Max", max)):
        if isinstance(value, int | float):
            attrs[slot.lower()] = float(value)
        else:
            # the attribute is required, and the tensor overrides it
            inputs[slot], attrs[slot.lower()] = check_variable(value, slot.lower(), "clip"), 0.0
    return LayerHelper("clip", name=name).apply("clip", inputs, attrs)


def increment(x, value=1.0, in_place=True):
    """x + value for x of one element; in_place: in x itself, so that a loop counts. Op increment."""
    check_variable(x, "x", "increment", FLOATS | {"int32", "int64"})
    outs = {"Out": x} if in_place else None
    return LayerHelper("increment").apply("increment", {"X": x}, {"step": float(value)}, outs=outs)


def isfinite(x, name=None):
    """bool [1]: whether no element of x is inf or nan. Ops isfinite_v2, reduce_all."""
    helper = LayerHelper("isfinite", name=name)
    each = helper.apply("isfinite_v2", {"X": check_variable(x, "x", "isfinite")}, stop_gradient=True)
    every = helper.apply("reduce_all", {"X": each}, {"reduce_all": True}, stop_gradient=True)
    return helper.apply("reshape2", {"X": every}, {"shape": [1]}, stop_gradient=True)
