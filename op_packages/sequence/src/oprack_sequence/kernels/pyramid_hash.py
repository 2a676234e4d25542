"""Kernels of pyramid_hash and of its gradient."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, KernelContext, kernel
from oprack.tensor import LoDTensor, ShapeOnly

from oprack_sequence.kernels._lod import offsets_of, positions, segment_ids, sequence_offsets, with_lod
from oprack_sequence.kernels.rows import murmur3_128, xxh32

_MARK, _HEAD, _HASHES = 17070416, 32, 64  # what a Bloom filter begins with, bytes before its bits, most hashes


def _windows(offsets: np.ndarray, length: int) -> np.ndarray:
    """Where a term of this length begins."""
    left = np.repeat(np.diff(offsets), np.diff(offsets)) - positions(offsets)
    return np.flatnonzero(left >= length)


def _words(ids: Array, begins: np.ndarray, length: int) -> Array:
    """uint32 [terms, length]: the bytes of terms."""
    return ids.reshape(-1)[begins[:, None] + np.arange(length)].view(np.uint32)


def _in_filter(op: str, slot: str, table: Array, words: Array) -> Array:
    """Whether a Bloom filter holds terms: all bits are set that their hashes name."""
    octets = np.ascontiguousarray(table).view(np.uint8).reshape(-1)
    mark, bits, hashes = (int(n) for n in octets[:24].view("<u8")) if octets.size >= _HEAD else (0, 0, 0)
    if mark != _MARK or not 0 < bits <= 8 * (octets.size - _HEAD) or hashes > _HASHES:
        raise InvalidArgumentError(
            f"op {op}: {slot} is no Bloom filter: it has {octets.size} bytes and begins with {mark}, for {bits} bits "
            f"and {hashes} hashes; expected {_MARK}, as many bits behind {_HEAD} bytes, and at most {_HASHES} hashes"
        )
    found = np.ones(len(words), bool)
    for seed in range(hashes):
        for place in murmur3_128(words, seed):
            at = (place % np.uint64(bits)).astype(np.int64)
            found &= (octets[_HEAD + (at >> 3)] >> (7 - (at & 7)).astype(np.uint8)) & 1 == 1
    return found


def _places(words: Array, num_emb: int, rand_len: int, space_len: int) -> np.ndarray:
    """int64 [terms, num_emb]: which number of W each number of an embedding is."""
    seeds = np.arange(0, num_emb, rand_len, dtype=np.uint32)
    begins = (xxh32(words, seeds) % np.uint32(space_len)).astype(np.int64)
    return (begins[..., None] + np.arange(rand_len)).reshape(len(words), -1)


def _terms(offsets: np.ndarray, pyramid_layer: int) -> list[tuple[int, np.ndarray]]:
    """Lengths of terms, and where those of each length begin."""
    longest = int(np.diff(offsets).max(initial=0))
    return [(length, _windows(offsets, length)) for length in range(2, min(pyramid_layer, longest) + 1)]


def _order(terms: list[tuple[int, np.ndarray]], offsets: np.ndarray) -> np.ndarray:
    """Terms length by length -> sequence by sequence."""
    begins = np.concatenate([np.zeros(0, np.int64), *(b for _, b in terms)])
    return np.argsort(segment_ids(offsets)[begins], kind="stable")


def _sequences(terms: list[tuple[int, np.ndarray]], offsets: np.ndarray, order: np.ndarray) -> np.ndarray:
    """The sequence of each term."""
    begins = np.concatenate([np.zeros(0, np.int64), *(b for _, b in terms)])
    return segment_ids(offsets)[begins][order]


@kernel("pyramid_hash", dtypes={"float32", "float64", "int8"})
def pyramid_hash(
    X: Array,
    W: Array,
    WhiteList: Array | None = None,
    BlackList: Array | None = None,
    *,
    num_emb: int,
    space_len: int,
    pyramid_layer: int,
    rand_len: int,
    drop_out_percent: float,
    is_training: int,
    use_filter: bool,
    white_list_len: int,
    black_list_len: int,
    seed: int,
    ctx: KernelContext,
) -> tuple[LoDTensor, Array, Array]:
    """The terms of one length at a time, over all sequences."""
    offsets, ids = sequence_offsets(ctx, "X"), X.astype(np.float32)
    terms = _terms(offsets, pyramid_layer)
    lists = [("WhiteList", WhiteList, white_list_len, True), ("BlackList", BlackList, black_list_len, False)]
    kept, places = [np.zeros(0, bool)], [np.zeros((0, num_emb), np.int64)]
    for length, begins in terms:
        words = _words(ids, begins, length)
        wanted = np.ones(len(begins), bool)
        for slot, table, given, inside in lists if use_filter else ():
            if given and table is not None:
                wanted &= _in_filter(ctx.op_type, slot, table, words) == inside
        kept.append(wanted)
        places.append(_places(words, num_emb, rand_len, space_len))
    order = _order(terms, offsets)
    left = np.concatenate(kept)[order]
    if is_training:
        left &= ctx.generator(seed).random(len(left)) >= drop_out_percent
    counts = np.bincount(_sequences(terms, offsets, order)[left], minlength=len(offsets) - 1)
    out = offsets_of(np.maximum(counts, 1))
    rows = np.zeros((out[-1], num_emb), W.dtype)
    rows[np.repeat(counts > 0, np.maximum(counts, 1))] = W.reshape(-1)[np.concatenate(places)[order][left]]
    if not is_training and W.dtype.kind == "f":
        rows *= W.dtype.type(drop_out_percent)
    drop = np.zeros((X.size * pyramid_layer, 1), np.int32)
    drop[: len(left), 0] = left
    return with_lod(rows, [out]), drop, ids


@kernel("pyramid_hash_grad", dtypes={"float32", "float64"})
def pyramid_hash_grad(
    X: Array,
    W: ShapeOnly,
    DropPos: Array,
    X_Temp_Out: Array,
    Out_grad: Array,
    *,
    num_emb: int,
    space_len: int,
    pyramid_layer: int,
    rand_len: int,
    drop_out_percent: float,
    is_training: int,
    ctx: KernelContext,
) -> tuple[None, Array]:
    """One sum by place over all terms."""
    offsets = sequence_offsets(ctx, "X")
    terms = _terms(offsets, pyramid_layer)
    order = _order(terms, offsets)
    left = DropPos.reshape(-1)[: len(order)] != 0
    counts = np.bincount(_sequences(terms, offsets, order)[left], minlength=len(offsets) - 1)
    parts = [_places(_words(X_Temp_Out, begins, n), num_emb, rand_len, space_len) for n, begins in terms]
    places = np.concatenate([np.zeros((0, num_emb), np.int64), *parts])[order][left]
    rows = np.repeat(counts > 0, np.maximum(counts, 1))
    if len(rows) != len(Out_grad):
        raise InvalidArgumentError(
            f"op {ctx.op_type}: DropPos leaves {len(rows)} rows and Out@GRAD has {len(Out_grad)}; expected both of one "
            "run of pyramid_hash"
        )
    flow = Out_grad[rows] * Out_grad.dtype.type(1 if is_training else drop_out_percent)
    total = np.bincount(places.reshape(-1), flow.reshape(-1), minlength=W.shape[0])
    return None, total.astype(Out_grad.dtype).reshape(W.shape)
