"""Blocks that move and cut tensors, for oprack.testing.fuzz."""

from __future__ import annotations

from oprack.testing.fuzz import Net, block


@block(takes="image", gives="steps")
def flattened(net: Net, x: str) -> str:
    """A map of channels as time steps, as a transformer behind convolutions reads it."""
    y = net.op("reshape2", {"X": x}, {"shape": [0, net.channels(x), -1]})
    return net.op("transpose2", {"X": y}, {"axis": [0, 2, 1]})


@block(takes="image", gives="image")
def shuffled(net: Net, x: str) -> str:
    """ShuffleNet: channels in groups change places."""
    c = net.channels(x)
    groups = net.choose(*[g for g in (2, 3, 1) if c % g == 0])
    n, h, w = 0, -1, net.shape(x)[3]
    if w < 0:
        return net.op("transpose2", {"X": x}, {"axis": [0, 1, 3, 2]})
    y = net.op("reshape2", {"X": x}, {"shape": [n, groups, c // groups, h, w]})
    y = net.op("transpose2", {"X": y}, {"axis": [0, 2, 1, 3, 4]})
    return net.op("reshape2", {"X": y}, {"shape": [n, c, h, w]})


@block(takes="image", gives="image")
def parted(net: Net, x: str) -> str:
    """A slice of the channels joined to the whole."""
    half = max(1, net.channels(x) // 2)
    y = net.op("slice", {"Input": x}, {"axes": [1], "starts": [0], "ends": [half]})
    return net.op("concat", {"X": [x, y] if net.flag() else [y, x]}, {"axis": 1})


@block(takes="rows", gives="rows")
def joined(net: Net, x: str) -> str:
    """Rows beside themselves or others of the same width."""
    return net.op("concat", {"X": [x, net.another(x)]}, {"axis": 1})


@block(takes="rows", gives="rows")
def copied(net: Net, x: str) -> str:
    """assign, or a cast there and back."""
    if net.flag():
        return net.op("assign", {"X": x})
    y = net.op("cast", {"X": x}, {"in_dtype": 5, "out_dtype": 6})
    return net.op("cast", {"X": y}, {"in_dtype": 6, "out_dtype": 5})
