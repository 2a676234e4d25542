"""Blocks of element-wise graphs, for oprack.testing.fuzz."""

from __future__ import annotations

from collections.abc import Callable

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


def _pointwise(form: str, axis: int) -> Callable[[Net, str], str]:
    """A block that does something element-wise to a variable of a form, with channels at `axis`."""

    @block(takes=form, gives=form)
    def pointwise(net: Net, x: str) -> str:
        return _one_of(net, x, axis)

    return pointwise


pointwise_image = _pointwise("image", 1)
pointwise_rows = _pointwise("rows", 1)
pointwise_steps = _pointwise("steps", 2)
pointwise_sequence = _pointwise("sequence", 1)


@block(takes="image", gives="rows")
def means(net: Net, x: str) -> str:
    """The mean of each channel."""
    return net.op("reduce_mean", {"X": x}, {"dim": [2, 3], "keep_dim": False})
