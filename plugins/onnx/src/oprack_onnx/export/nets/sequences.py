"""Ops on sequences of rows."""

from __future__ import annotations

import numpy as np
from oprack.errors import UnimplementedError
from oprack.tensor import numpy_dtype
from oprack.types import VarType

from oprack_onnx.export.expressions import LAST, Expr, arange, constant, full, maybe, read, write
from oprack_onnx.export.graph import Call, exported
from oprack_onnx.export.lod import Sequences, ids_of, offsets_of, ranges, set_lod


def pooled(call: Call, x: Expr, sequences: Sequences, how: str, rank: int) -> Expr:
    """One row of each sequence, without a look at those that have none."""
    shape = sequences.count.join(x.shape(1), axis=0)
    if how in ("FIRST", "LAST"):
        rows = sequences.starts if how == "FIRST" else sequences.ends - 1
        return x.gather(rows.minimum(sequences.rows - 1).maximum(0))
    ids = sequences.ids()
    if how == "MAX":
        return full(shape, np.finfo(numpy_dtype(x.dtype)).min, x.dtype).scatter_add(ids, x, "max")
    out = full(shape, 0, x.dtype).scatter_add(ids, x)
    lengths = sequences.lengths.cast(x.dtype).maximum(1.0).reshape(-1, *[1] * (rank - 1))
    return {"SUM": out, "AVERAGE": out / lengths, "SQRT": out / lengths.sqrt()}[how]


@exported("sequence_pool")
def sequence_pool(call: Call) -> None:
    x, sequences, rank = read(call), Sequences(call), call.rank()
    out = pooled(call, x, sequences, call.attr("pooltype"), rank)
    there = (sequences.lengths > 0).reshape(-1, *[1] * (rank - 1))
    write(call, there.select(out, call.attr("pad_value")))
    set_lod(call, sequences.levels[:-1])


@exported("sequence_softmax")
def sequence_softmax(call: Call) -> None:
    x, sequences = read(call), Sequences(call)
    flat, ids = x.reshape(-1), sequences.ids()
    most = full(sequences.count, np.finfo(numpy_dtype(x.dtype)).min, x.dtype).scatter_add(ids, flat, "max")
    exps = (flat - most.gather(ids)).exp()
    sums = full(sequences.count, 0, x.dtype).scatter_add(ids, exps)
    write(call, (exps / sums.gather(ids)).op("Reshape", x.shape()))


@exported("sequence_expand")
def sequence_expand(call: Call) -> None:
    level = call.attr("ref_level")
    repeats, x = Sequences(call, "Y", level=level), read(call)
    own = call.graph.lod(call.name("X"))
    if len(own) > 1:
        raise UnimplementedError("X has several levels of LoD")
    times = repeats.lengths
    ids = ids_of(offsets_of(times))
    if not own:
        write(call, x.gather(ids))
        set_lod(call, [])
        return
    sequences = Sequences(call)
    lengths = sequences.lengths.gather(ids)
    write(call, x.gather(ranges(sequences.starts.gather(ids), lengths)))
    set_lod(call, [offsets_of(lengths)])


@exported("sequence_expand_as")
def sequence_expand_as(call: Call) -> None:
    sequences = Sequences(call, "Y")
    write(call, read(call).gather(sequences.ids()))
    set_lod(call, sequences.levels[-1:])


@exported("sequence_reverse")
def sequence_reverse(call: Call) -> None:
    sequences = Sequences(call)
    ids = sequences.ids()
    rows = (sequences.starts + sequences.ends - 1).gather(ids) - arange(sequences.rows)
    write(call, read(call).gather(rows), "Y")
    set_lod(call, sequences.levels, "Y")


@exported("sequence_concat")
def sequence_concat(call: Call) -> None:
    count = len(call.op.input("X"))
    every = [Sequences(call, "X", i) for i in range(count)]
    parts = [read(call, "X", i) for i in range(count)]
    lengths = [s.lengths.unsqueeze(1) for s in every]
    starts, before = [], constant(call.graph, [0])
    for sequences in every:
        starts.append((sequences.starts + before).unsqueeze(1))
        before = before + sequences.rows
    together = [v[0].join(*v[1:], axis=1) if count > 1 else v[0] for v in (starts, lengths)]
    whole = parts[0].join(*parts[1:], axis=0) if count > 1 else parts[0]
    write(call, whole.gather(ranges(*(v.reshape(-1) for v in together))))
    set_lod(call, [*every[0].levels[:-1], offsets_of(together[1].sum(1))])


@exported("sequence_pad")
def sequence_pad(call: Call) -> None:
    x, sequences, value = read(call), Sequences(call), read(call, "PadValue")
    longest, rank = call.attr("padded_length"), call.rank()
    width = sequences.lengths.max().reshape(1) if longest == -1 else constant(call.graph, [longest])
    step = arange(width).unsqueeze(0)
    there = step < sequences.lengths.unsqueeze(1)
    rows = there.select(sequences.starts.unsqueeze(1) + step, 0)
    mask = there.reshape(*[there.shape(), *[1] * (rank - 1)])
    filled = value.scalar() if call.dims("PadValue") in ((1,), ()) else value
    write(call, mask.select(x.gather(rows), filled))
    write(call, sequences.lengths, "Length")


@exported("sequence_unpad")
def sequence_unpad(call: Call) -> None:
    x, lengths = read(call), read(call, "Length").cast(VarType.INT64).reshape(-1)
    offsets = offsets_of(lengths)
    ids = ids_of(offsets)
    places = arange(offsets.slice(-1, LAST)) - offsets.slice(0, -1).gather(ids)
    out = x.op("GatherND", ids.unsqueeze(1).join(places.unsqueeze(1), axis=1))
    write(call, out.unsqueeze(1) if call.rank() == 2 else out)
    set_lod(call, [offsets])


@exported("sequence_reshape")
def sequence_reshape(call: Call) -> None:
    x, sequences, width = read(call), Sequences(call), call.attr("new_dim")
    write(call, x.reshape(-1, width))
    set_lod(call, [*sequences.levels[:-1], sequences.offsets * x.size(1) / width])


@exported("sequence_slice")
def sequence_slice(call: Call) -> None:
    sequences = Sequences(call)
    starts, lengths = (read(call, s).cast(VarType.INT64).reshape(-1) for s in ("Offset", "Length"))
    write(call, read(call).gather(ranges(sequences.starts + starts, lengths)))
    set_lod(call, [*sequences.levels[:-1], offsets_of(lengths)])


@exported("sequence_enumerate")
def sequence_enumerate(call: Call) -> None:
    x, sequences = read(call).reshape(-1), Sequences(call)
    rows = arange(sequences.rows).unsqueeze(1) + arange(constant(call.graph, call.attr("win_size")))
    inside = rows < sequences.ends.gather(sequences.ids()).unsqueeze(1)
    write(call, inside.select(x.gather(inside.select(rows, 0)), call.attr("pad_value")))
    set_lod(call, sequences.levels)


@exported("sequence_erase")
def sequence_erase(call: Call) -> None:
    x, sequences = read(call), Sequences(call)
    kept = full(x.size(0), True, VarType.BOOL)
    for token in call.attr("tokens"):
        kept = kept & ~x.reshape(-1).equal(token)
    write(call, x.op("Compress", kept, axis=0))
    set_lod(call, [*sequences.levels[:-1], offsets_of(kept.cast(VarType.INT64)).gather(sequences.offsets)])


@exported("sequence_scatter")
def sequence_scatter(call: Call) -> None:
    ids = read(call, "Ids").cast(VarType.INT64).reshape(-1)
    places = Sequences(call, "Ids").ids().unsqueeze(1).join(ids.unsqueeze(1), axis=1)
    updates = read(call, "Updates").reshape(-1)
    write(call, read(call).op("ScatterND", places, updates, reduction="add"))


def windows(x: Expr, sequences: Sequences, start: int, length: int) -> Expr:
    """[rows, length, width]: the rows around each one, 0 outside of its sequence."""
    ids = sequences.ids()
    rows = arange(sequences.rows).unsqueeze(1) + arange(constant(x.graph, length)) + start
    inside = (rows >= sequences.starts.gather(ids).unsqueeze(1)) & (rows < sequences.ends.gather(ids).unsqueeze(1))
    return inside.unsqueeze(2).select(x.gather(inside.select(rows, 0)), 0)


@exported("sequence_conv")
def sequence_conv(call: Call) -> None:
    if call.attr("paddingTrainable"):
        raise UnimplementedError("its padding is trained")
    x, kernel = read(call), read(call, "Filter")
    found = windows(x, Sequences(call), call.attr("contextStart"), call.attr("contextLength"))
    write(call, found.op("Reshape", x.shape(0, 1).join(kernel.size(0), axis=0)) @ kernel)


@exported("row_conv")
def row_conv(call: Call) -> None:
    """Each row and those behind it, weighed by column."""
    x, kernel, taps = read(call), read(call, "Filter"), call.dims("Filter")[0]
    if call.graph.lod(call.name("X")):
        write(call, (windows(x, Sequences(call), 0, taps) * kernel.unsqueeze(0)).sum(1))
        return
    out = None
    padded = x.op("Pad", x.ints([0, 0, 0, 0, taps - 1, 0]))
    for k in range(taps):
        term = padded.slice(constant(call.graph, k), x.size(1) + k, 1) * kernel.at(k, 0)
        out = term if out is None else out + term
    assert out is not None
    write(call, out)


@exported("sequence_mask")
def sequence_mask(call: Call) -> None:
    x, given, most = read(call), maybe(call, "MaxLenTensor"), call.attr("maxlen")
    if given is not None:
        width = given.cast(VarType.INT64).reshape(-1).slice(0, 1)
    else:
        width = x.max().cast(VarType.INT64).maximum(0).reshape(1) if most < 0 else constant(call.graph, [most])
    write(call, (arange(width).cast(x.dtype) < x.unsqueeze(-1)).cast(VarType(call.attr("out_dtype"))), "Y")


@exported("lod_reset")
def lod_reset(call: Call) -> None:
    write(call, read(call).op("Identity"))
    if call.attr("append"):
        raise UnimplementedError("it appends a level")
    if call.has("Y"):
        levels = [Expr(call.graph, n, VarType.INT64) for n in call.graph.lod(call.name("Y"))]
        set_lod(call, levels or [read(call, "Y").cast(VarType.INT64).reshape(-1)])
    else:
        set_lod(call, [constant(call.graph, call.attr("target_lod"))])


@exported("im2sequence")
def im2sequence(call: Call) -> None:
    """The patches of each image are a sequence."""
    if call.has("Y"):
        raise UnimplementedError("the sizes of its images are a tensor")
    from oprack_onnx.export.nets.images import patches

    x, kernel, (top, left, bottom, right) = read(call), call.attr("kernels"), call.attr("paddings")
    found, counts = patches(call, x, kernel, call.attr("strides"), (top, left, bottom, right), [1, 1], "X")
    batch = x.size(0)
    rows = found.transpose(0, 2, 1)
    write(call, rows.op("Reshape", constant(call.graph, [-1]).join(found.size(1), axis=0)))
    set_lod(call, [arange(batch + 1) * counts])


@exported("ctc_align")
def ctc_align(call: Call) -> None:
    """Marks what is neither blank nor the same as before it, and keeps that."""
    x, blank, merged = read(call, "Input"), call.attr("blank"), bool(call.attr("merge_repeated"))
    if call.has("InputLength"):
        length = read(call, "InputLength").cast(VarType.INT64).reshape(-1, 1)
        place = arange(x.size(1)).unsqueeze(0)
        kept = ~x.equal(blank) & (place < length)
        if merged:
            before = x.op("Pad", x.ints([0, 1, 0, 0]), -1).slice(0, -1, 1)
            kept = kept & ~x.equal(before)
        number = kept.cast(VarType.INT64)
        target = kept.select(number.cumsum(1) - 1, x.size(1))
        spare = full(x.shape() + x.ints([0, 1]), call.attr("padding_value"), x.dtype)
        write(call, spare.op("ScatterElements", target, x, axis=1).slice(0, -1, 1), "Output")
        write(call, number.sum(1, keep=True).cast(call.graph.dtype(call.name("InputLength"))), "OutputLength")
        return
    sequences = Sequences(call, "Input")
    flat = x.reshape(-1)
    kept = ~flat.equal(blank)
    if merged:
        before = flat.op("Pad", flat.ints([1, 0]), -1).slice(0, -1)
        first = sequences.positions().equal(0)
        kept = kept & (first | ~flat.equal(before))
    number = offsets_of(kept.cast(VarType.INT64))
    write(call, flat.op("Compress", kept, axis=0).unsqueeze(1), "Output")
    set_lod(call, [number.gather(sequences.offsets)], "Output")
