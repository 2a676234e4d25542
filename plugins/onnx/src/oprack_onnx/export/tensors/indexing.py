"""What is sorted, picked, scattered, rolled and counted."""

from __future__ import annotations

import numpy as np
from oprack.errors import UnimplementedError
from oprack.types import VarType

from oprack_onnx.export.expressions import LAST, Expr, arange, constant, full, maybe, read, write
from oprack_onnx.export.graph import Call, exported
from oprack_onnx.export.lod import scan
from oprack_onnx.export.tensors.shapes import listed

_DTYPE = {"out_dtype", "dtype"}


def dtype_of(call: Call, name: str = "dtype") -> VarType:
    """The dtype that an attribute names."""
    return VarType(call.attr(name))


# Places ---------------------------------------------------------------------------------------------------------------
@exported("scatter")
def scatter(call: Call) -> None:
    x, ids, updates = read(call), read(call, "Ids").cast(VarType.INT64).reshape(-1, 1), read(call, "Updates")
    if call.attr("overwrite"):
        write(call, x.op("ScatterND", ids, updates))
    else:
        cleared = x.op("ScatterND", ids, full(updates.shape(), 0, x.dtype))
        write(call, cleared.op("ScatterND", ids, updates, reduction="add"))


@exported("scatter_nd_add")
def scatter_nd_add(call: Call) -> None:
    x, index, updates = read(call), read(call, "Index").cast(VarType.INT64), read(call, "Updates")
    if call.dims("Index")[-1:] == (0,):
        raise UnimplementedError("its places have no index")
    write(call, x.op("ScatterND", index, updates, reduction="add"))


@exported("put_along_axis")
def put_along_axis(call: Call) -> None:
    how = {"assign": "none", "add": "add", "mul": "mul", "multiply": "mul", "amin": "min", "amax": "max"}.get(
        call.attr("Reduce")
    )
    if how is None or not (call.attr("Include_self") or how == "none"):
        raise UnimplementedError(f"it reduces by {call.attr('Reduce')}, or leaves out what was there")
    index = read(call, "Index").cast(VarType.INT64)
    value = read(call, "Value").op("Expand", index.shape())
    write(
        call, read(call, "Input").op("ScatterElements", index, value, axis=call.attr("Axis"), reduction=how), "Result"
    )


@exported("index_sample")
def index_sample(call: Call) -> None:
    write(call, read(call).op("GatherElements", read(call, "Index"), axis=1))


@exported("index_add")
def index_add(call: Call) -> None:
    x, axis, rank = read(call), call.attr("axis") % call.rank(), call.rank()
    order = [axis, *(i for i in range(rank) if i != axis)]
    back = [int(i) for i in np.argsort(order)]
    index = read(call, "Index").cast(VarType.INT64)
    added = x.transpose(*order).scatter_add(index, read(call, "AddValue").transpose(*order))
    write(call, added.transpose(*back))


@exported("index_put")
def index_put(call: Call) -> None:
    count = len(call.op.input("indices"))
    parts = [read(call, "indices", i) for i in range(count)]
    if any(p.dtype is VarType.BOOL for p in parts):
        if count > 1:
            raise UnimplementedError("it takes several masks")
        places = parts[0].nonzero().transpose(1, 0)
    else:
        shape = parts[0].shape()
        if len({call.rank("indices", i) for i in range(count)}) > 1:
            raise UnimplementedError("its indices have several ranks")
        total = parts[0].cast(VarType.INT64)
        for p in parts[1:]:
            total = total + p.cast(VarType.INT64)  # its shape is what they broadcast to
        shape = total.shape()
        wide = [p.cast(VarType.INT64).op("Expand", shape).unsqueeze(-1) for p in parts]
        places = wide[0] if count == 1 else wide[0].join(*wide[1:], axis=-1)
    x = read(call, "x")
    last = count if parts[0].dtype is not VarType.BOOL else call.rank("indices")
    target = places.shape(0, -1)
    if call.rank("x") > last:
        target = target.join(x.shape(last), axis=0)
    value = read(call, "value").op("Expand", target)
    how = "add" if call.attr("accumulate") else "none"
    write(call, x.op("ScatterND", places, value, reduction=how), "out")


@exported("masked_select")
def masked_select(call: Call) -> None:
    x, mask = read(call), read(call, "Mask")
    if call.dims() != call.dims("Mask"):
        mask = mask.op("Expand", x.shape())
        x = x.op("Expand", mask.shape())
    write(call, x.reshape(-1).op("Compress", mask.reshape(-1)), "Y")


@exported("multiplex")
def multiplex(call: Call) -> None:
    count = len(call.op.input("X"))
    rows = [read(call, "X", i).unsqueeze(0) for i in range(count)]
    stacked = rows[0].join(*rows[1:], axis=0) if count > 1 else rows[0]
    ids = read(call, "Ids").cast(VarType.INT64).reshape(-1)
    n = ids.size(0)
    places = ids.unsqueeze(1).join(arange(n).unsqueeze(1), axis=1)
    write(call, stacked.slice(0, n, 1).op("GatherND", places))


@exported("gather_tree")
def gather_tree(call: Call) -> None:
    """From the last step to the first: which beam each path comes from."""
    ids, parents = read(call, "Ids"), read(call, "Parents").cast(VarType.INT64)

    def step(states: list[Expr], given: list[Expr]) -> tuple[list[Expr], list[Expr]]:
        found, before = (v.op("GatherElements", states[0], axis=1) for v in given)
        return [before], [found]

    first = arange(ids.size(2)).op("Expand", ids.shape(1))
    _, out = scan(call, [first], [ids, parents], step, [2, 2], backwards=True)
    write(call, out)


@exported("shard_index")
def shard_index(call: Call) -> None:
    x, shards, number = read(call), call.attr("nshards"), call.attr("shard_id")
    size = (call.attr("index_num") + shards - 1) // shards
    own = (x / size).equal(number)
    write(call, own.select(x - (x / size) * size, call.attr("ignore_value")))


@exported("c_embedding")
def c_embedding(call: Call) -> None:
    table, ids = read(call, "W"), read(call, "Ids").cast(VarType.INT64)
    rows = call.dims("W")[0]
    own = ids - call.attr("start_index")
    inside = (own >= 0) & (own < rows)
    found = table.gather(inside.select(own, 0))
    write(call, inside.unsqueeze(-1).select(found, 0))


# Rolled, cut, joined --------------------------------------------------------------------------------------------------
@exported("roll")
def roll(call: Call) -> None:
    if call.has("ShiftsTensor"):
        raise UnimplementedError("its shifts are a tensor")
    x, shifts, axes = read(call), call.attr("shifts"), call.attr("axis")
    shape = x.shape()
    out = x if axes else x.reshape(-1)
    for shift, axis in zip(shifts, axes or [0], strict=False):
        size = call.dims()[axis] if axes else int(np.prod(call.dims())) if min(call.dims(), default=0) >= 0 else -1
        if size < 0:  # what goes round is within one turn in nets with open sizes
            out = out.slice(-shift, LAST, axis).join(out.slice(0, -shift, axis), axis=axis)
        elif size and shift % size:
            out = out.slice(-(shift % size), LAST, axis).join(out.slice(0, -(shift % size), axis), axis=axis)
    write(call, (out if axes else out.op("Reshape", shape)).op("Identity"))


@exported("reverse")
def reverse(call: Call) -> None:
    out = read(call)
    for axis in call.attr("axis"):
        out = out.slice(-1, -LAST, axis, -1)
    write(call, out)


@exported("crop", "crop_tensor")
def crop(call: Call) -> None:
    x, rank = read(call), call.rank()
    if call.type == "crop":
        offsets = listed(call, "offsets", "Offsets")
        given = Expr(call.graph, listed(call, "shape"), VarType.INT64) if not call.has("Y") else read(call, "Y").shape()
    else:
        offsets = listed(call, "offsets", "Offsets", "OffsetsTensor")
        given = Expr(call.graph, listed(call, "shape", "Shape", "ShapeTensor"), VarType.INT64)
    begin = Expr(call.graph, offsets, VarType.INT64)
    if (
        not call.attr("offsets")
        and not call.has("Offsets")
        and not (call.type == "crop_tensor" and call.has("OffsetsTensor"))
    ):
        begin = constant(call.graph, [0] * rank)
    size = (given < 0).select(x.shape() - begin, given)
    write(call, x.op("Slice", begin, begin + size, constant(call.graph, list(range(rank)))))


@exported("pad_constant_like")
def pad_constant_like(call: Call) -> None:
    y, wanted = read(call, "Y"), read(call).shape()
    pads = constant(call.graph, [0] * call.rank()).join(wanted - y.shape(), axis=0)
    write(call, y.op("Pad", pads, call.attr("pad_value")))


@exported("partial_concat", "partial_sum")
def partial(call: Call) -> None:
    start, length = call.attr("start_index"), call.attr("length")
    end = LAST if length < 0 else start + length
    if start < 0:
        start, end = start, (LAST if start + length >= 0 or length < 0 else start + length)
    parts = [read(call, "X", i).slice(start, end, 1) for i in range(len(call.op.input("X")))]
    if call.type == "partial_concat":
        write(call, parts[0].join(*parts[1:], axis=1))
    else:
        write(call, parts[0].op("Sum", *parts[1:]))


@exported("broadcast_tensors")
def broadcast_tensors(call: Call) -> None:
    parts = [read(call, "X", i) for i in range(len(call.op.input("X")))]
    ones = [full(p.shape(), 1, VarType.INT64) for p in parts]
    total = ones[0]
    for one in ones[1:]:
        total = total * one
    for i, part in enumerate(parts):
        write(call, part.op("Expand", total.shape()), "Out", i)


@exported("repeat_interleave")
def repeat_interleave(call: Call) -> None:
    x, axis, rank = read(call), call.attr("dim") % call.rank(), call.rank()
    if not call.has("RepeatsTensor"):
        count = call.attr("Repeats")
        wide = x.unsqueeze(axis + 1).expand(*[1] * (axis + 1), count, *[1] * (rank - axis - 1))
        front, back = x.shape(0, axis), x.shape(axis + 1)
        write(call, wide.reshape(*([front] if axis else []), -1, *([back] if axis < rank - 1 else [])))
        return
    ends = read(call, "RepeatsTensor").cast(VarType.INT64).cumsum()
    place = arange(ends.slice(-1, LAST).reshape(1))
    write(call, x.gather((ends.unsqueeze(0) <= place.unsqueeze(1)).cast(VarType.INT64).sum(1), axis))


@exported("channel_shuffle", "shuffle_channel")
def channel_shuffle(call: Call) -> None:
    groups = call.attr("groups" if call.type == "channel_shuffle" else "group")
    x = read(call)
    wide = x.reshape(0, groups, -1, x.shape(2)).transpose(0, 2, 1, 3, 4)
    write(call, wide.op("Reshape", x.shape()))


@exported("expand", "expand_as")
def expand(call: Call) -> None:
    x = read(call)
    if call.type == "expand":
        write(
            call,
            x.op(
                "Tile",
                Expr(call.graph, listed(call, "expand_times", "ExpandTimes", "expand_times_tensor"), VarType.INT64),
            ),
        )
    else:
        write(call, x.op("Tile", read(call, "target_tensor").shape() / x.shape()))


@exported("flatten")
def flatten(call: Call) -> None:
    write(call, read(call).op("Flatten", axis=call.attr("axis")))


@exported("one_hot")
def one_hot(call: Call) -> None:
    """Zeros where an index lies outside, as Fluid's with allow_out_of_range; the last axis of size 1 goes."""
    x, depth = read(call).cast(VarType.INT64), maybe(call, "depth_tensor")
    classes = arange(constant(call.graph, [call.attr("depth")]) if depth is None else depth)
    if call.dims()[-1:] != (1,):
        x = x.unsqueeze(-1)
    write(call, x.equal(classes).cast(VarType(call.attr("dtype"))))


# Diagonals ------------------------------------------------------------------------------------------------------------
@exported("diag", "diag_v2")
def diag(call: Call) -> None:
    slot = "Diagonal" if call.type == "diag" else "X"
    x = read(call, slot)
    offset = call.attr("offset") if call.type == "diag_v2" else 0
    filled = call.attr("padding_value") if call.type == "diag_v2" else 0
    if call.rank(slot) == 1:
        n = x.size(0)
        row = arange(n + abs(offset))
        on = (row.unsqueeze(1) + offset).equal(row.unsqueeze(0))
        places = (row - max(offset, 0)).maximum(0).minimum(n - 1)  # by columns
        write(call, on.select(x.gather(places).unsqueeze(0), filled))
        return
    write(call, _diagonal(x, offset, 0, 1, 2))


def _diagonal(x: Expr, offset: int, axis1: int, axis2: int, rank: int) -> Expr:
    """The diagonal of two axes, as the last axis."""
    axis1, axis2 = axis1 % rank, axis2 % rank
    rest = [i for i in range(rank) if i not in (axis1, axis2)]
    y = x.transpose(axis1, axis2, *rest)
    rows, columns = y.size(0), y.size(1)
    top, left = (-offset, 0) if offset < 0 else (0, offset)
    count = (rows - top).minimum(columns - left).maximum(0)
    row = arange(count).unsqueeze(1)
    found = y.op("GatherND", (row + top).join(row + left, axis=1))  # [count, rest]
    return found.transpose(*range(1, len(rest) + 1), 0)


@exported("diagonal", "trace")
def diagonal(call: Call) -> None:
    found = _diagonal(
        read(call, "Input"), call.attr("offset"), call.attr("axis1"), call.attr("axis2"), call.rank("Input")
    )
    write(call, found if call.type == "diagonal" else found.sum(-1))


@exported("diag_embed")
def diag_embed(call: Call) -> None:
    x, rank, offset = read(call, "Input"), call.rank("Input") + 1, call.attr("offset")
    dim1, dim2 = call.attr("dim1") % rank, call.attr("dim2") % rank
    n = x.size(-1)
    row = arange(n + abs(offset))
    on = (row.unsqueeze(1) + offset).equal(row.unsqueeze(0))
    places = (row - max(offset, 0)).maximum(0).minimum(n - 1)
    made = on.select(x.gather(places, -1).unsqueeze(-2), 0)
    order: list[int] = []
    rest = iter(range(rank - 2))
    for i in range(rank):
        order.append(rank - 2 if i == dim1 else rank - 1 if i == dim2 else next(rest))
    write(call, made.transpose(*order))


@exported("fill_diagonal")
def fill_diagonal(call: Call) -> None:
    x, dims = read(call), call.dims()
    if min(dims) < 0:
        raise UnimplementedError("the size of its tensor is not known")
    mask = np.zeros(dims, bool)
    if len(dims) == 2:
        offset, columns = call.attr("offset"), dims[1]
        flat, step = mask.reshape(-1), columns + 1
        end = len(flat) if call.attr("wrap") else min(len(flat), columns * columns)
        places = np.arange(0, end, step) + offset
        kept = (places >= 0) & (places < len(flat)) & (places // columns == np.arange(0, end, step) // columns)
        flat[places[kept]] = True
    else:
        place = np.arange(min(dims))
        mask[(place,) * len(dims)] = True
    write(call, constant(call.graph, mask, VarType.BOOL).select(call_value(call, x), x))


def call_value(call: Call, x: Expr) -> Expr:
    """The attribute `value` in the dtype of a tensor."""
    return x.like(call.attr("value"))


@exported("tril_indices", "triu_indices")
def tril_indices(call: Call) -> None:
    if call.type == "tril_indices":
        found = np.tril_indices(call.attr("rows"), call.attr("offset"), call.attr("cols"))
    else:
        found = np.triu_indices(call.attr("row"), call.attr("offset"), call.attr("col"))
    write(call, constant(call.graph, np.stack(found), dtype_of(call)), "out")


# Made and counted -----------------------------------------------------------------------------------------------------
@exported("linspace", "logspace")
def linspace(call: Call) -> None:
    dtype = dtype_of(call)
    start, stop = (read(call, s).cast(VarType.FP64).scalar() for s in ("Start", "Stop"))
    number = read(call, "Num").cast(VarType.INT64).scalar()
    step = (stop - start) / (number - 1).maximum(1).cast(VarType.FP64)
    place = arange(number)
    up = start + step * place.cast(VarType.FP64)
    down = stop - step * (number - 1 - place).cast(VarType.FP64)
    even = (place < number / 2).select(up, down)
    even = number.equal(1).select(start, even)
    if call.type == "logspace":
        even = read(call, "Base").cast(VarType.FP64).scalar() ** even
    write(call, even.cast(dtype))


@exported("fill", "empty")
def fill(call: Call) -> None:
    dtype = dtype_of(call)
    if call.type == "fill":
        made = np.reshape(np.asarray(call.attr("value")), call.attr("shape"))
        write(call, constant(call.graph, made, dtype))
    else:
        dims = Expr(call.graph, listed(call, "shape", "ShapeTensor", "ShapeTensorList"), VarType.INT64)
        write(call, full(dims, 0, dtype))


@exported("temporal_shift")
def temporal_shift(call: Call) -> None:
    """The first channels come from the frame before, the next ones from the one behind."""
    x, frames = read(call), call.attr("seg_num")
    channels = call.dims()[1]
    if channels < 0:
        raise UnimplementedError("the number of channels is not known")
    first, second = int(channels * call.attr("shift_ratio")), int(channels * 2 * call.attr("shift_ratio"))
    wide = x.reshape(-1, frames, channels, x.shape(2))
    a, b, c = (wide.slice(s, e, 2) for s, e in ((0, first), (first, second), (second, LAST)))
    pad = [0] * (call.rank() + 1)
    before, behind = pad * 2, pad * 2
    before[1], behind[len(pad) + 1] = 1, 1
    a = a.op("Pad", a.ints(before)).slice(0, frames, 1)
    b = b.op("Pad", b.ints(behind)).slice(1, LAST, 1)
    write(call, a.join(b, c, axis=2).op("Reshape", x.shape()))


@exported("pixel_unshuffle")
def pixel_unshuffle(call: Call) -> None:
    x, r = read(call), call.attr("downscale_factor")
    channels, height, width = call.dims()[1:]
    if min(channels, height, width) < 0:
        raise UnimplementedError("the size of its image is not known")
    wide = x.reshape(-1, channels, height // r, r, width // r, r).transpose(0, 1, 3, 5, 2, 4)
    write(call, wide.reshape(-1, channels * r * r, height // r, width // r))


@exported("add_position_encoding")
def add_position_encoding(call: Call) -> None:
    x, (length, width) = read(call), call.dims()[-2:]
    if call.rank() != 3 or length < 0:
        raise UnimplementedError("the length of its sequences is not known")
    half = width // 2
    exponents = np.arange(half) / (half - 1) if half > 1 else np.ones(half)
    angles = np.arange(length)[:, None] / 10000.0**exponents
    table = np.concatenate([np.sin(angles), np.cos(angles)], axis=1) * call.attr("beta")
    write(call, x * call.attr("alpha") + constant(call.graph, table, x.dtype))


@exported("fsp")
def fsp(call: Call) -> None:
    x, y = (read(call, s).reshape(0, 0, -1) for s in "XY")
    write(call, x @ y.transpose(0, 2, 1) / x.size(2).scalar().cast(x.dtype))


@exported("cvm")
def cvm(call: Call) -> None:
    x = read(call)
    if not call.attr("use_cvm"):
        write(call, x.slice(2, LAST, 1), "Y")
        return
    logs = [(x.slice(k, k + 1, 1) + 1.0).log() for k in (0, 1)]
    write(call, logs[0].join(logs[1] - logs[0], x.slice(2, LAST, 1), axis=1), "Y")


@exported("conv_shift")
def conv_shift(call: Call) -> None:
    """Each row turned to each place, times its filter."""
    x, y = read(call), read(call, "Y")
    width, taps = call.dims()[1], call.dims("Y")[1]
    if min(width, taps) < 0:
        raise UnimplementedError("the width of its rows is not known")
    places = (np.arange(width)[:, None] + np.arange(taps) - taps // 2) % width
    write(call, (x.gather(places, 1) * y.unsqueeze(1)).sum(2))
