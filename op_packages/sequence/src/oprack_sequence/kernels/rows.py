"""The rows of each sequence: joined, cut, reversed, counted, weighed."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError, InvalidLoDError
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import LoDTensor, ShapeOnly
from oprack.types import FLOATS, INTEGERS

from oprack_sequence.kernels._lod import (
    host,
    offsets_of,
    padded_rows,
    positions,
    reversed_rows,
    row_ranges,
    segment_ids,
    segment_sum,
    sequence_offsets,
    sum_by_index,
    with_lod,
)

# hashes ---------------------------------------------------------------------------------------------------------------
# Hashes of many short rows at once: XXH32 and MurmurHash3 (x64, 128 bits), with their specifications' constants.
_P1, _P2, _P3, _P4, _P5 = (np.uint32(p) for p in (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1))

_C1, _C2 = np.uint64(0x87C37B91114253D5), np.uint64(0x4CF5AD432745937F)

_M1, _M2 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)


def _rotated(x: Array, bits: int) -> Array:
    width = 8 * x.dtype.itemsize
    return (x << x.dtype.type(bits)) | (x >> x.dtype.type(width - bits))


def xxh32(words: Array, seeds: Array) -> Array:
    """uint32 [rows, seeds]: the hash of each row of uint32 words by each seed."""
    columns = [words[:, i : i + 1] for i in range(words.shape[1])]
    start = np.broadcast_to(seeds, (len(words), len(seeds))).copy()
    at = 0
    if len(columns) >= 4:
        lanes = [start + _P1 + _P2, start + _P2, start, start - _P1]
        for at in range(4, len(columns) // 4 * 4 + 1, 4):
            stripe = columns[at - 4 : at]
            lanes = [_rotated(a + w * _P2, 13) * _P1 for a, w in zip(lanes, stripe, strict=True)]
        one, two, three, four = (_rotated(a, bits) for a, bits in zip(lanes, (1, 7, 12, 18), strict=True))
        total = one + two + three + four
    else:
        total = start + _P5
    total = total + np.uint32(4 * len(columns))
    for word in columns[at:]:
        total = _rotated(total + word * _P3, 17) * _P4
    total = (total ^ (total >> np.uint32(15))) * _P2
    total = (total ^ (total >> np.uint32(13))) * _P3
    return total ^ (total >> np.uint32(16))


def murmur3_128(words: Array, seed: int) -> tuple[Array, Array]:
    """Both uint64 [rows] of the hash of each row of uint32 words."""
    count = words.shape[1]
    padded = np.zeros((len(words), -(-count // 4) * 4), np.uint32)
    padded[:, :count] = words
    blocks = padded.view("<u8")
    one, two = (np.full(len(words), seed, np.uint64) for _ in range(2))
    for i in range(0, blocks.shape[1], 2):
        whole = 2 * i + 4 <= count
        one = one ^ _rotated(blocks[:, i] * _C1, 31) * _C2
        if whole:
            one = (_rotated(one, 27) + two) * np.uint64(5) + np.uint64(0x52DCE729)
        two = two ^ _rotated(blocks[:, i + 1] * _C2, 33) * _C1  # of zeros behind the end: nothing
        if whole:
            two = (_rotated(two, 31) + one) * np.uint64(5) + np.uint64(0x38495AB5)
    one, two = one ^ np.uint64(4 * count), two ^ np.uint64(4 * count)
    one = one + two
    two = two + one
    one, two = _mixed(one), _mixed(two)
    one = one + two
    return one, two + one


def _mixed(x: Array) -> Array:
    for factor in (_M1, _M2):
        x = (x ^ (x >> np.uint64(33))) * factor
    return x ^ (x >> np.uint64(33))


# add_position_encoding ------------------------------------------------------------------------------------------------
@kernel("add_position_encoding", place=("cpu", "cuda"), dtypes=FLOATS)
def add_position_encoding(X: Array, *, alpha: float, beta: float, ctx: KernelContext, xp: ArrayModule) -> Array:
    """A table of sinusoids for all positions, then one gather."""
    half = X.shape[-1] // 2
    if X.ndim == 3:
        time = np.arange(X.shape[1])
    else:
        time = positions(sequence_offsets(ctx, "X"))
    exponents = np.arange(half) / (half - 1) if half > 1 else np.ones(half)
    angles = np.arange(time.max(initial=-1) + 1)[:, None] / 10000.0**exponents
    table = np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(X.dtype)
    return X * X.dtype.type(alpha) + xp.asarray(table * X.dtype.type(beta))[xp.asarray(time)]


@kernel("add_position_encoding_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def add_position_encoding_grad(Out_grad: Array, *, alpha: float) -> Array:
    """A product."""
    return Out_grad * Out_grad.dtype.type(alpha)


# filter_by_instag -----------------------------------------------------------------------------------------------------
@kernel("filter_by_instag")
def filter_by_instag(
    Ins: Array, Ins_tag: Array, Filter_tag: Array, *, is_lod: bool, out_val_if_empty: int, ctx: KernelContext
) -> tuple[LoDTensor, LoDTensor, LoDTensor]:
    """One mask over all tags, and one gather."""
    offsets = sequence_offsets(ctx, "Ins") if is_lod else np.arange(len(Ins) + 1)
    tags = sequence_offsets(ctx, "Ins_tag")
    if len(tags) != len(offsets):
        raise InvalidLoDError(
            f"op {ctx.op_type}: Ins has {len(offsets) - 1} instances and Ins_tag {len(tags) - 1}; expected as many"
        )
    wanted = np.isin(Ins_tag.reshape(-1), Filter_tag.reshape(-1))
    kept = np.flatnonzero(np.bincount(segment_ids(tags)[wanted], minlength=len(offsets) - 1))
    if not len(kept):
        empty = np.full((1, Ins.shape[1]), out_val_if_empty, Ins.dtype)
        one = np.array([[0, 1, 1]])
        return with_lod(empty, [[0, 1]]), with_lod(np.zeros((1, 1), np.float32), [[0, 1]]), with_lod(one, [[0, 1]])
    lengths = np.diff(offsets)[kept]
    out = offsets_of(lengths)
    table = np.stack([out[:-1], offsets[kept], lengths], axis=1)
    level = list(range(len(kept) + 1))
    rows = Ins[row_ranges(offsets[kept], lengths)]
    return with_lod(rows, [out]), with_lod(np.ones((len(kept), 1), np.float32), [level]), with_lod(table, [level])


@kernel("filter_by_instag_grad")
def filter_by_instag_grad(IndexMap: Array, LossWeight: Array, Ins: ShapeOnly, Out_grad: Array) -> Array:
    """Rows back where they came from."""
    grad = np.zeros(Ins.shape, Out_grad.dtype)
    if LossWeight.any():
        grad[row_ranges(IndexMap[:, 1], IndexMap[:, 2])] = Out_grad
    return grad


# sequence_concat ------------------------------------------------------------------------------------------------------
@kernel("sequence_concat", place=("cpu", "cuda"), dtypes=FLOATS | INTEGERS)
def sequence_concat(X: list[Array], *, ctx: KernelContext, xp: ArrayModule) -> LoDTensor:
    """One gather from the inputs laid end to end."""
    rows, lengths = _rows(ctx)
    out = xp.concatenate(X, axis=0)[xp.asarray(rows)]
    return with_lod(out, [*ctx.lod("X")[:-1], offsets_of(lengths.sum(axis=1))])


@kernel("sequence_concat_grad", place=("cpu", "cuda"), dtypes=FLOATS | INTEGERS)
def sequence_concat_grad(Out_grad: Array, *, ctx: KernelContext, xp: ArrayModule) -> dict[str, list[Array]]:
    """The inverse scatter, cut into the inputs."""
    rows, lengths = _rows(ctx)
    all_rows = xp.empty_like(Out_grad)
    all_rows[xp.asarray(rows)] = Out_grad
    ends = np.cumsum(lengths.sum(axis=0)).tolist()
    starts = [0, *ends[:-1]]
    return {"X@GRAD": [all_rows[a:b].copy() for a, b in zip(starts, ends, strict=True)]}


def _rows(ctx: KernelContext) -> tuple[Array, Array]:
    """(row of the inputs laid end to end, for each row of Out; lengths [sequences, inputs])."""
    offsets = [sequence_offsets(ctx, "X", i) for i in range(ctx.input_count("X"))]
    counts = [len(o) - 1 for o in offsets]
    if len(set(counts)) > 1:
        raise InvalidArgumentError(
            f"op {ctx.op_type}: the inputs have {counts} sequences; expected as many in each of them"
        )
    lengths = np.stack([np.diff(o) for o in offsets], axis=1)
    first = offsets_of(lengths.sum(axis=0))[:-1]  # of each input among all rows
    starts = np.stack([o[:-1] for o in offsets], axis=1) + first
    return row_ranges(starts.reshape(-1), lengths.reshape(-1)), lengths


# sequence_enumerate ---------------------------------------------------------------------------------------------------
@kernel("sequence_enumerate", place=("cpu", "cuda"), dtypes=INTEGERS)
def sequence_enumerate(X: Array, *, win_size: int, pad_value: int, ctx: KernelContext, xp: ArrayModule) -> Array:
    """One gather of [N, win_size] ids."""
    offsets = sequence_offsets(ctx, "X")
    rows = np.arange(offsets[-1])[:, None] + np.arange(win_size)
    inside = rows < offsets[1:][segment_ids(offsets)][:, None]
    ids = X.reshape(-1)[xp.asarray(np.where(inside, rows, 0))]
    return xp.where(xp.asarray(inside), ids, xp.asarray(pad_value, xp.int64).astype(X.dtype))


# sequence_erase -------------------------------------------------------------------------------------------------------
@kernel("sequence_erase", place=("cpu", "cuda"), dtypes=INTEGERS)
def sequence_erase(X: Array, *, tokens: list[int], ctx: KernelContext, xp: ArrayModule) -> LoDTensor:
    """A mask and one compression; the number of rows left is read back."""
    offsets = sequence_offsets(ctx, "X")
    kept = ~xp.isin(X.reshape(-1), xp.asarray(tokens, dtype=xp.int64))
    before = np.zeros(len(X) + 1, np.int64)
    np.cumsum(host(kept), out=before[1:])
    return with_lod(X[kept], [*ctx.lod("X")[:-1], before[offsets]])


# sequence_reshape -----------------------------------------------------------------------------------------------------
@kernel("sequence_reshape", place=("cpu", "cuda"), dtypes=FLOATS | INTEGERS)
def sequence_reshape(X: Array, *, new_dim: int, ctx: KernelContext) -> LoDTensor:
    """The elements as they are; only shape and LoD change."""
    elements = sequence_offsets(ctx, "X") * X.shape[1]
    uneven = np.flatnonzero(elements % new_dim)
    if len(uneven):
        i = int(uneven[0]) - 1
        raise InvalidArgumentError(
            f"op {ctx.op_type}: sequence {i} of X has {elements[i + 1] - elements[i]} elements; expected a multiple of "
            f"new_dim {new_dim}"
        )
    return with_lod(X.reshape(-1, new_dim).copy(), [*ctx.lod("X")[:-1], elements // new_dim])


@kernel("sequence_reshape_grad", place=("cpu", "cuda"), dtypes=FLOATS | INTEGERS)
def sequence_reshape_grad(X: Array, Out_grad: Array) -> Array:
    """The gradient in the shape of X."""
    return Out_grad.reshape(X.shape).copy()


# sequence_reverse -----------------------------------------------------------------------------------------------------
@kernel("sequence_reverse", place=("cpu", "cuda"), dtypes=FLOATS | INTEGERS)
def sequence_reverse(X: Array, *, ctx: KernelContext, xp: ArrayModule) -> Array:
    """One gather of rows."""
    return X[xp.asarray(reversed_rows(sequence_offsets(ctx, "X")))]


# sequence_scatter -----------------------------------------------------------------------------------------------------
@kernel("sequence_scatter", place=("cpu", "cuda"), dtypes=FLOATS | INTEGERS, deterministic={"cpu"})
def sequence_scatter(X: Array, Ids: Array, Updates: Array, *, ctx: KernelContext, xp: ArrayModule) -> Array:
    """One unbuffered addition at (sequence, id)."""
    rows, columns = _places(Ids, X.shape, ctx, xp)
    out = X.copy()
    xp.add.at(out, (rows, columns), Updates.reshape(-1))
    return out


@kernel("sequence_scatter_grad", place=("cpu", "cuda"), dtypes=FLOATS | INTEGERS)
def sequence_scatter_grad(Ids: Array, Out_grad: Array, *, ctx: KernelContext, xp: ArrayModule) -> dict[str, Array]:
    """A copy for X, one gather for Updates."""
    rows, columns = _places(Ids, Out_grad.shape, ctx, xp)
    return {"X@GRAD": Out_grad.copy(), "Updates@GRAD": Out_grad[rows, columns].reshape(-1, 1)}


def _places(Ids: Array, shape: tuple[int, ...], ctx: KernelContext, xp: ArrayModule) -> tuple[Array, Array]:
    """Row and column of each update."""
    offsets = sequence_offsets(ctx, "Ids")
    if len(offsets) - 1 != shape[0]:
        raise InvalidArgumentError(
            f"op {ctx.op_type}: Ids has {len(offsets) - 1} sequences, but X has {shape[0]} rows; expected as many"
        )
    columns = host(Ids).reshape(-1)
    if len(columns) and not (0 <= columns.min() and columns.max() < np.prod(shape[1:])):
        raise InvalidArgumentError(
            f"op {ctx.op_type}: Ids lie in [{columns.min()}, {columns.max()}]; expected columns of X, "
            f"from 0 to {shape[1] - 1}"
        )
    return xp.asarray(segment_ids(offsets)), Ids.reshape(-1)


# sequence_select ------------------------------------------------------------------------------------------------------
@kernel("sequence_select", place=("cpu", "cuda"), dtypes=FLOATS | INTEGERS | {"bool"})
def sequence_select(X: Array, Index: Array, *, ctx: KernelContext, xp: ArrayModule) -> LoDTensor:
    """One gather of rows."""
    rows, levels = _selected(Index, ctx)
    return with_lod(X[xp.asarray(rows)], levels)


@kernel("sequence_select_grad", place=("cpu", "cuda"), dtypes=FLOATS | INTEGERS, deterministic={"cpu"})
def sequence_select_grad(X: ShapeOnly, Index: Array, Out_grad: Array, *, ctx: KernelContext, xp: ArrayModule) -> Array:
    """One sum over the copies of each row."""
    rows, _ = _selected(Index, ctx)
    return sum_by_index(Out_grad, rows, X.shape[0], xp)


def _selected(Index: Array, ctx: KernelContext) -> tuple[np.ndarray, list[np.ndarray]]:
    """(rows of X that Out has, its offsets)."""
    chosen, levels = host(Index).reshape(-1).astype(np.int64), []
    count = len(sequence_offsets(ctx, "X", level=0)) - 1
    if len(chosen) and not (0 <= chosen.min() and chosen.max() < count):
        raise InvalidArgumentError(
            f"op {ctx.op_type}: Index has numbers from {chosen.min()} to {chosen.max()}, and X {count} sequences; "
            f"expected numbers from 0 to {count - 1}"
        )
    for level in ctx.lod("X"):
        offsets = np.asarray(level, np.int64)
        lengths = np.diff(offsets)[chosen]
        levels.append(offsets_of(lengths))
        chosen = row_ranges(offsets[:-1][chosen], lengths)
    return chosen, levels


# sequence_slice -------------------------------------------------------------------------------------------------------
@kernel("sequence_slice", place=("cpu", "cuda"), dtypes=FLOATS | INTEGERS)
def sequence_slice(X: Array, Offset: Array, Length: Array, *, ctx: KernelContext, xp: ArrayModule) -> LoDTensor:
    """One gather of rows."""
    rows, lengths = _sequence_slice_rows(Offset, Length, ctx)
    return with_lod(X[xp.asarray(rows)], [*ctx.lod("X")[:-1], offsets_of(lengths)])


@kernel("sequence_slice_grad", place=("cpu", "cuda"), dtypes=FLOATS | INTEGERS)
def sequence_slice_grad(Offset: Array, Length: Array, Out_grad: Array, *, ctx: KernelContext, xp: ArrayModule) -> Array:
    """One scatter of rows into zeros."""
    rows, _ = _sequence_slice_rows(Offset, Length, ctx)
    x_grad = xp.zeros((int(sequence_offsets(ctx, "X")[-1]), *Out_grad.shape[1:]), Out_grad.dtype)
    x_grad[xp.asarray(rows)] = Out_grad
    return x_grad


def _sequence_slice_rows(Offset: Array, Length: Array, ctx: KernelContext) -> tuple[Array, Array]:
    """(rows of X that stay, how many of each sequence)."""
    offsets = sequence_offsets(ctx, "X")
    starts = host(Offset).reshape(-1).astype(np.int64)
    lengths = host(Length).reshape(-1).astype(np.int64)
    available = np.diff(offsets)
    if not len(starts) == len(lengths) == len(available):
        raise InvalidArgumentError(
            f"op {ctx.op_type}: Offset has {len(starts)} and Length {len(lengths)} elements; "
            f"expected {len(available)}, one for each sequence of X"
        )
    wrong = np.flatnonzero((starts < 0) | (lengths < 0) | (starts + lengths > available))
    if len(wrong):
        i = int(wrong[0])
        raise InvalidArgumentError(
            f"op {ctx.op_type}: sequence {i} has {available[i]} rows, but Offset is {starts[i]} and Length "
            f"{lengths[i]}; expected 0 <= Offset and Offset + Length <= rows"
        )
    return row_ranges(offsets[:-1] + starts, lengths), lengths


# sequence_softmax -----------------------------------------------------------------------------------------------------
@kernel("sequence_softmax", place=("cpu", "cuda"), dtypes=FLOATS, deterministic={"cpu"})
def sequence_softmax(X: Array, *, ctx: KernelContext, xp: ArrayModule) -> Array:
    """Shifted by the largest element of each sequence."""
    offsets = sequence_offsets(ctx, "X")
    ids = xp.asarray(segment_ids(offsets))
    exps = xp.exp(X - _segment_max(X, offsets, xp)[ids])
    exps /= segment_sum(exps, offsets, xp)[ids]
    return exps


@kernel("sequence_softmax_grad", place=("cpu", "cuda"), dtypes=FLOATS, deterministic={"cpu"})
def sequence_softmax_grad(Out: Array, Out_grad: Array, *, ctx: KernelContext, xp: ArrayModule) -> Array:
    """Out (g - sum of Out g over the sequence)."""
    offsets = sequence_offsets(ctx, "X")
    inner = segment_sum(Out * Out_grad, offsets, xp)[xp.asarray(segment_ids(offsets))]
    return Out * (Out_grad - inner)


def _segment_max(x: Array, offsets: Array, xp: ArrayModule) -> Array:
    """[n, ...]: largest element of each sequence and column of x [N, ...]; 0 for an empty one."""
    lengths = np.diff(offsets)
    out = xp.zeros((len(lengths), *x.shape[1:]), x.dtype)
    filled = np.flatnonzero(lengths)
    if not len(filled):
        return out
    if xp is np:
        out[filled] = np.maximum.reduceat(x, offsets[filled], axis=0)
        return out
    rows, valid = padded_rows(offsets[np.append(filled, len(lengths))], int(lengths.max()))
    valid = xp.asarray(valid.reshape(*valid.shape, *[1] * (x.ndim - 1)))
    out[xp.asarray(filled)] = xp.where(valid, x[xp.asarray(rows)], -xp.inf).max(axis=1)
    return out
