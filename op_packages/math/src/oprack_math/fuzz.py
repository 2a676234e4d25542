"""Blocks of element-wise graphs, for oprack.testing.fuzz."""

from __future__ import annotations

from oprack.testing.fuzz import Net, block

_BINARY = (
    "elementwise_add",
    "elementwise_mul",
    "elementwise_sub",
    "elementwise_max",
    "elementwise_min",
    "elementwise_div",
)
_UNARY = ("exp", "abs", "square", "sqrt", "floor", "sin", "rsqrt", "log")


def _combined(net: Net, x: str) -> str:
    """Two variables of the same dims, which may be one and the same: y + y."""
    return net.op(net.choose(*_BINARY), {"X": x, "Y": net.another(x)}, {"axis": -1})


def _broadcast(net: Net, x: str, axis: int) -> str:
    """With a parameter of the channels, of one element, or of all ones but the last dims."""
    c, rank = net.channels(x), len(net.shape(x))
    shape, at = net.choose(([c], axis), ([1], -1), ([c, *[1] * (rank - axis - 1)], -1))
    inputs = {"X": x, "Y": net.param(shape, fill="positive")}
    return net.op(net.choose(*_BINARY), inputs, {"axis": at})


def _scaled(net: Net, x: str) -> str:
    attrs = {"scale": net.choose(0.5, 1.0, -2.0), "bias": net.choose(0.0, 0.25), "bias_after_scale": net.flag()}
    return net.op("scale", {"X": x}, attrs)


def _mapped(net: Net, x: str) -> str:
    return net.op(net.choose(*_UNARY), {"X": x})


def _one_of(net: Net, x: str, axis: int) -> str:
    kind = net.choose(_combined, _broadcast, _scaled, _mapped)
    return kind(net, x, axis) if kind is _broadcast else kind(net, x)


@block(takes="image", gives="image")
def pointwise_image(net: Net, x: str) -> str:
    """Something element-wise on a map of channels."""
    return _one_of(net, x, 1)


@block(takes="rows", gives="rows")
def pointwise_rows(net: Net, x: str) -> str:
    """Something element-wise on rows."""
    return _one_of(net, x, 1)


@block(takes="steps", gives="steps")
def pointwise_steps(net: Net, x: str) -> str:
    """Something element-wise on time steps."""
    return _one_of(net, x, 2)


@block(takes="sequence", gives="sequence")
def pointwise_sequence(net: Net, x: str) -> str:
    """Something element-wise on rows of sequences."""
    return _one_of(net, x, 1)


@block(takes="image", gives="rows")
def means(net: Net, x: str) -> str:
    """The mean of each channel."""
    return net.op("reduce_mean", {"X": x}, {"dim": [2, 3], "keep_dim": False})
