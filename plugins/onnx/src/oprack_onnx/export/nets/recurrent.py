"""Recurrent layers over sequences, their cells, and the best path through tags."""

from __future__ import annotations

from collections.abc import Callable

from oprack.errors import UnimplementedError
from oprack.types import VarType

from oprack_onnx.export.expressions import LAST, Expr, arange, full, maybe, read, write
from oprack_onnx.export.graph import Call, exported
from oprack_onnx.export.lod import Sequences, scan, set_lod

_ACTIVATIONS: dict[str, Callable[[Expr], Expr]] = {
    "sigmoid": lambda x: x.sigmoid(),
    "tanh": lambda x: x.op("Tanh"),
    "relu": lambda x: x.op("Relu"),
    "identity": lambda x: x,
    "": lambda x: x,
}
_NUMBERED = ("identity", "sigmoid", "tanh", "relu")
"""Activations of gru_unit by their numbers."""


def _cut(x: Expr, count: int, size: Expr) -> list[Expr]:
    """Equal parts of the last axis."""
    return x.ops("Split", count, axis=-1, num_outputs=count)


def gru_step(x: Expr, h: Expr, weight: Expr, size: int, how: tuple[str, str, bool]) -> tuple[Expr, Expr, Expr, Expr]:
    """Gates, candidate, reset state and next state of a GRU whose input has been multiplied."""
    gate, candidate, origin = _ACTIVATIONS[how[0]], _ACTIVATIONS[how[1]], how[2]
    # The weights of a gru are [size, 2 size] of update and reset, then [size, size], one behind the other
    flat = weight.reshape(-1)
    gates = flat.slice(0, 2 * size * size).reshape(size, 2 * size)
    inner = flat.slice(2 * size * size, LAST).reshape(size, size)
    both = gate(x.slice(0, 2 * size, 1) + h @ gates)
    update, reset = both.slice(0, size, 1), both.slice(size, LAST, 1)
    kept = reset * h
    new = candidate(x.slice(2 * size, LAST, 1) + kept @ inner)
    mixed = update * h + (1.0 - update) * new if origin else (1.0 - update) * h + update * new
    return both, new, kept, mixed


def _start(call: Call, slot: str, x: Expr, count: Expr, size: int) -> Expr:
    given = maybe(call, slot)
    return full(count.join(count.ints([size]), axis=0), 0, x.dtype) if given is None else given


@exported("gru", "fusion_gru")
def gru(call: Call) -> None:
    fused = call.type == "fusion_gru"
    slot = "X" if fused else "Input"
    x, sequences = read(call, slot), Sequences(call, slot)
    weight = read(call, "WeightH" if fused else "Weight")
    size = call.dims("WeightH" if fused else "Weight")[0]
    x = x @ read(call, "WeightX") if fused else x
    bias, back = maybe(call, "Bias"), bool(call.attr("is_reverse"))
    x = x if bias is None else x + bias.reshape(1, -1)
    how = (call.attr("gate_activation"), call.attr("activation"), not fused and bool(call.attr("origin_mode")))
    rows, there = sequences.padded(back)

    def step(states: list[Expr], given: list[Expr]) -> tuple[list[Expr], list[Expr]]:
        following = gru_step(given[0], states[0], weight_in(given[0], weight), size, how)[3]
        kept = given[1].unsqueeze(1).select(following, states[0])
        return [kept], [kept]

    start = _start(call, "H0", x, sequences.count, size)
    _, steps = scan(call, [start], [x.gather(rows), there], step, [2, 2])
    write(call, sequences.unpadded(steps, back), "Hidden")
    set_lod(call, sequences.levels, "Hidden")


def weight_in(inner: Expr, outer: Expr) -> Expr:
    """A value of the graph outside, used in a body."""
    return Expr(inner.graph, outer.name, outer.dtype)


@exported("gru_unit")
def gru_unit(call: Call) -> None:
    x, size, bias = read(call, "Input"), call.dims("HiddenPrev")[1], maybe(call, "Bias")
    x = x if bias is None else x + bias.reshape(1, -1)
    how = (_NUMBERED[call.attr("gate_activation")], _NUMBERED[call.attr("activation")], bool(call.attr("origin_mode")))
    both, new, kept, mixed = gru_step(x, read(call, "HiddenPrev"), read(call, "Weight"), size, how)
    write(call, both.join(new, axis=1), "Gate")
    write(call, kept, "ResetHiddenPrev")
    write(call, mixed, "Hidden")


@exported("lstm_unit")
def lstm_unit(call: Call) -> None:
    x, before = read(call), read(call, "C_prev")
    i, f, o, g = x.ops("Split", 4, axis=1, num_outputs=4)
    cell = (f + call.attr("forget_bias")).sigmoid() * before + i.sigmoid() * g.op("Tanh")
    write(call, cell, "C")
    write(call, o.sigmoid() * cell.op("Tanh"), "H")


@exported("lstm", "fusion_lstm", "lstmp")
def lstm(call: Call) -> None:
    """Gates stand as candidate, input, forget, output; peepholes for input, forget, output lie behind the bias."""
    fused, projected = call.type == "fusion_lstm", call.type == "lstmp"
    slot = "X" if fused else "Input"
    weight_slot = "WeightH" if fused else "Weight"
    x, sequences, weight = read(call, slot), Sequences(call, slot), read(call, weight_slot)
    size, bias, back = call.dims(weight_slot)[1] // 4, read(call, "Bias").reshape(-1), bool(call.attr("is_reverse"))
    x = (x @ read(call, "WeightX") if fused else x) + bias.slice(0, 4 * size)
    peep = [bias.slice((4 + k) * size, (5 + k) * size) for k in range(3)] if call.attr("use_peepholes") else []
    gate, cell, candidate = (_ACTIVATIONS[call.attr(f"{n}_activation")] for n in ("gate", "cell", "candidate"))
    projection = read(call, "ProjWeight") if projected else None
    clips = [call.attr(n) for n in ("cell_clip", "proj_clip")] if projected else [0.0, 0.0]
    rows, there = sequences.padded(back)

    def step(states: list[Expr], given: list[Expr]) -> tuple[list[Expr], list[Expr]]:
        (h, c), (now, mask) = states, given
        g, i, f, o = (now + h @ weight_in(h, weight)).ops("Split", 4, axis=1, num_outputs=4)
        if peep:
            i, f = i + c * weight_in(c, peep[0]), f + c * weight_in(c, peep[1])
        new = candidate(g) * gate(i) + c * gate(f)
        new = new.op("Clip", -clips[0], clips[0]) if clips[0] else new
        out = gate(o + new * weight_in(c, peep[2]) if peep else o) * cell(new)
        if projection is not None:
            out = _ACTIVATIONS[call.attr("proj_activation")](out @ weight_in(out, projection))
            out = out.op("Clip", -clips[1], clips[1]) if clips[1] else out
        kept = [mask.unsqueeze(1).select(a, b) for a, b in ((out, h), (new, c))]
        return kept, kept

    wide = call.dims("ProjWeight")[1] if projected else size
    if projected and call.has("H0"):
        raise UnimplementedError("it has a first state, which it projects")
    starts = [_start(call, "H0", x, sequences.count, wide), _start(call, "C0", x, sequences.count, size)]
    _, _, hidden, cells = scan(call, starts, [x.gather(rows), there], step, [2, 2, 2, 2])
    for name, steps in (("Projection" if projected else "Hidden", hidden), ("Cell", cells)):
        write(call, sequences.unpadded(steps, back), name)
        set_lod(call, sequences.levels, name)


# The best path through tags -------------------------------------------------------------------------------------------
def viterbi(
    call: Call, x: Expr, there: Expr, lengths: Expr, start: Expr | None, stop: Expr | None, follow: Expr
) -> tuple[Expr, Expr]:
    """Best path [steps, sequences] and its score, of emissions [steps, sequences, tags]."""

    def forward(states: list[Expr], given: list[Expr]) -> tuple[list[Expr], list[Expr]]:
        (best, first), (now, mask) = states, given
        ways = best.unsqueeze(2) + weight_in(best, follow).unsqueeze(0)  # [sequences, from, to]
        came = ways.op("ArgMax", dtype=VarType.INT64, axis=1, keepdims=0)
        following = ways.max(1) + now
        begun = first.select(now + weight_in(now, start) if start is not None else now, following)
        kept = mask.unsqueeze(1).select(begun, best)
        return [kept, (first & ~first)], [came]

    shape = x.shape(1)
    one = full(call_ints(call, [1]), True, VarType.BOOL)
    best, _, came = scan(call, [full(shape, 0, x.dtype), one], [x, there], forward, [2, 1, 2])
    final = best if stop is None else best + stop
    last = final.op("ArgMax", dtype=VarType.INT64, axis=1, keepdims=0)
    scores = (lengths > 0).select(final.max(1), 0)

    def backward(states: list[Expr], given: list[Expr]) -> tuple[list[Expr], list[Expr]]:
        (tag, inside), (origin, mask) = states, given
        # `origin` of the step behind this one tells where its tag came from
        before = origin.op("GatherElements", tag.unsqueeze(1), axis=1).squeeze(1)
        chosen = inside.select(before, tag)
        return [chosen, mask], [chosen]

    behind = came.slice(1, LAST).join(came.slice(0, 1), axis=0)
    outside = full(lengths.shape(), False, VarType.BOOL)
    _, _, path = scan(call, [last, outside], [behind, there], backward, [1, 1, 1], backwards=True)
    return path, scores


def call_ints(call: Call, values: list[int]) -> Expr:
    """A row of integers."""
    return Expr(call.graph, call.graph.ints(values), VarType.INT64)


@exported("crf_decoding")
def crf_decoding(call: Call) -> None:
    x, table = read(call, "Emission"), read(call, "Transition")
    start, stop, follow = table.slice(0, 1), table.slice(1, 2), table.slice(2, LAST)
    if call.has("Length"):
        lengths = read(call, "Length").cast(VarType.INT64).reshape(-1)
        there = arange(x.size(1)).unsqueeze(1) < lengths.unsqueeze(0)
        path, _ = viterbi(call, x.transpose(1, 0, 2), there, lengths, start, stop, follow)
        out = there.select(path, 0).transpose(1, 0)
        label_shape = out.shape()
    else:
        sequences = Sequences(call, "Emission")
        rows, there = sequences.padded()
        path, _ = viterbi(call, x.gather(rows), there, sequences.lengths, start, stop, follow)
        out = sequences.unpadded(path).unsqueeze(1)
        label_shape = out.shape()
        set_lod(call, sequences.levels, "ViterbiPath")
    if call.has("Label"):
        same = out.equal(read(call, "Label").cast(VarType.INT64).op("Reshape", label_shape)).cast(VarType.INT64)
        out = same if not call.has("Length") else there.transpose(1, 0).select(same, 0)
    write(call, out, "ViterbiPath")


@exported("viterbi_decode")
def viterbi_decode(call: Call) -> None:
    x, table = read(call, "Input"), read(call, "Transition")
    lengths = read(call, "Length").cast(VarType.INT64).reshape(-1)
    tags = bool(call.attr("include_bos_eos_tag"))
    start, stop = (table.slice(-1, LAST), table.slice(-2, -1)) if tags else (None, None)
    steps = x.transpose(1, 0, 2).slice(0, lengths.max().reshape(1))
    there = arange(steps.size(0)).unsqueeze(1) < lengths.unsqueeze(0)
    path, scores = viterbi(call, steps, there, lengths, start, stop, table)
    write(call, scores, "Scores")
    write(call, there.select(path, 0).transpose(1, 0), "Path")
