"""Blocks that write layers out in small ops, and products among transposes and factors, for oprack.testing.fuzz."""

from __future__ import annotations

from oprack.testing.fuzz import Net, block


def _number(net: Net, value: float) -> str:
    """A parameter of one element."""
    name = net.param([1])
    net.params[name].array[0] = value
    return name


def _times(net: Net, x: str, factor: float) -> str:
    """x times a number, as a scale or by a parameter."""
    if net.flag():
        return net.op("elementwise_mul", {"X": x, "Y": _number(net, factor)}, {"axis": -1})
    return net.op("scale", {"X": x}, {"scale": factor, "bias": 0.0})


def _plus(net: Net, x: str, number: float) -> str:
    if net.flag():
        return net.op("elementwise_add", {"X": x, "Y": _number(net, number)}, {"axis": -1})
    return net.op("scale", {"X": x}, {"scale": 1.0, "bias": number})


@block(takes="steps", gives="steps")
def written_out_norm(net: Net, x: str) -> str:
    """layer_norm as means, squares and a root."""
    last = {"dim": [-1], "keep_dim": True}
    apart = net.op("elementwise_sub", {"X": x, "Y": net.op("reduce_mean", {"X": x}, last)}, {"axis": -1})
    square = net.op("square", {"X": apart}) if net.flag() else net.op("pow", {"X": apart}, {"factor": 2.0})
    root = _plus(net, net.op("reduce_mean", {"X": square}, last), net.choose(1e-5, 1e-3, 0.5))
    y = net.op("elementwise_div", {"X": apart, "Y": net.op("sqrt", {"X": root})}, {"axis": -1})
    y = net.op("elementwise_mul", {"X": y, "Y": net.param([net.channels(x)])}, {"axis": -1})
    return net.op("elementwise_add", {"X": y, "Y": net.param([net.channels(x)])}, {"axis": -1})


@block(takes="steps", gives="steps")
def written_out_activation(net: Net, x: str) -> str:
    """gelu as erf, or swish as sigmoid."""
    if net.flag():
        return net.op("elementwise_mul", {"X": x, "Y": net.op("sigmoid", {"X": x})}, {"axis": -1})
    half = net.op("erf", {"X": _times(net, x, net.choose(0.5**0.5, 0.5))})
    return _times(net, net.op("elementwise_mul", {"X": x, "Y": _plus(net, half, 1.0)}, {"axis": -1}), 0.5)


@block(takes="steps", gives="steps")
def transposed_product(net: Net, x: str) -> str:
    """A product with x, or x transposed, on either side, with factors behind it."""
    d, kind = net.channels(x), net.choose("matmul_v2", "matmul")
    other = net.op("transpose2", {"X": x}, {"axis": [0, 2, 1]})
    y = net.op(kind, {"X": x, "Y": other})
    y = _times(net, y, net.choose(0.5, 2.0))
    y = net.op(kind, {"X": net.op("transpose2", {"X": y}, {"axis": [0, 2, 1]}), "Y": x})
    y = net.op(kind, {"X": y, "Y": net.param([d, d])})
    y = net.op("elementwise_mul", {"X": y, "Y": net.param([d])}, {"axis": -1})
    y = net.op("elementwise_add", {"X": y, "Y": net.param([d])}, {"axis": -1})
    return _plus(net, _times(net, y, 0.25), net.choose(0.0, 0.5))
