"""Blocks of recurrent nets and of sequences with LoD, for oprack.testing.fuzz."""

from __future__ import annotations

from oprack.testing.fuzz import Net, block


def _projected(net: Net, x: str, width: int) -> str:
    y = net.op("mul", {"X": x, "Y": net.param([net.channels(x), width])})
    return net.op("elementwise_add", {"X": y, "Y": net.param([width])}, {"axis": 1}) if net.flag() else y


@block(takes="sequence", gives="sequence")
def gru(net: Net, x: str) -> str:
    """A projection and a GRU over each sequence."""
    d = net.choose(4, 3, 8, 1)
    inputs = {"Input": _projected(net, x, 3 * d), "Weight": net.param([d, 3 * d])}
    inputs |= {"Bias": net.param([1, 3 * d])} if net.flag() else {}
    return net.op("gru", inputs, {"is_reverse": net.flag(), "origin_mode": net.flag()}, out="Hidden")


@block(takes="sequence", gives="sequence")
def lstm(net: Net, x: str) -> str:
    """A projection and an LSTM over each sequence."""
    d, peepholes = net.choose(4, 3, 8, 1), net.flag()
    inputs = {"Input": _projected(net, x, 4 * d), "Weight": net.param([d, 4 * d])}
    inputs["Bias"] = net.param([1, (7 if peepholes else 4) * d])
    return net.op("lstm", inputs, {"use_peepholes": peepholes, "is_reverse": net.flag()}, out="Hidden")


@block(takes="sequence", gives="sequence")
def attended(net: Net, x: str) -> str:
    """Attention of heads within each sequence, perhaps with turned queries and keys, and a way around it."""
    heads, shared, d = net.choose(2, 1, 4), net.flag(), net.choose(2, 4)
    places = net.op("sequence_positions", {"X": x}) if net.flag() else None
    slots = {}
    for slot, count in (("Q", heads), ("K", 1 if shared else heads), ("V", 1 if shared else heads)):
        rows = net.op("reshape2", {"X": _projected(net, x, count * d)}, {"shape": [0, count, d]})
        if places is not None and slot != "V":
            rows = net.op("rotary_embedding", {"X": rows, "Positions": places}, {"interleaved": net.flag()})
        slots[slot] = rows
    if net.flag():
        slots["RelativeBias"] = net.param([heads, 5])
    attrs = {"causal": net.flag(), "window": net.choose([-1, -1], [2, 1])}
    found = net.op("sequence_attention", slots, attrs)
    y = _projected(net, net.op("reshape2", {"X": found}, {"shape": [0, heads * d]}), net.channels(x))
    return net.op("elementwise_add", {"X": x, "Y": y}) if net.flag() else y


@block(takes="sequence", gives="sequence")
def moved(net: Net, x: str) -> str:
    """Sums so far, the row before, or a softmax over each sequence."""
    kind = net.choose("sequence_cumsum", "sequence_shift", "sequence_softmax")
    attrs = {"offset": net.choose(1, -1, 3)} if kind == "sequence_shift" else {}
    return net.op(kind, {"X": x}, attrs)


@block(takes="sequence", gives="rows")
def pooled(net: Net, x: str) -> str:
    """One row for each sequence."""
    return net.op("sequence_pool", {"X": x}, {"pooltype": net.choose("SUM", "MAX", "AVERAGE", "LAST", "FIRST", "SQRT")})


@block(takes="sequence", gives="sequence")
def convolved(net: Net, x: str) -> str:
    """A window of rows times a filter."""
    length = net.choose(3, 1, 5)
    filters = net.param([length * net.channels(x), net.choose(4, 2)])
    attrs = {"contextLength": length, "contextStart": -(length // 2), "contextStride": 1}
    return net.op("sequence_conv", {"X": x, "Filter": filters}, attrs)


@block(takes="sequence", gives="sequence")
def reversed_rows(net: Net, x: str) -> str:
    """Each sequence backwards."""
    return net.op("sequence_reverse", {"X": x})


@block(takes="sequence")
def labels(net: Net, x: str) -> str:
    """The best labels by a CRF."""
    n = net.channels(x)
    return net.op("crf_decoding", {"Emission": x, "Transition": net.param([n + 2, n])})
