"""Attention between the rows of sequences: batched products over blocks of sequences of like length."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from oprack.errors import InvalidArgumentError, InvalidLoDError
from oprack.kernel import Array, ArrayModule, KernelContext, RequiredArray, kernel
from oprack.types import FLOATS

from oprack_sequence.kernels._blocks import Block, Reach, blocks
from oprack_sequence.kernels._lod import host, positions, segment_ids, sequence_offsets, sum_by_index


class Attention(NamedTuple):
    """What the scores of queries and keys are made with.

    Attributes:
        scale: Factor of the products.
        reach: Which positions a query looks at.
        dropout: Probability with which a weight is 0; 0: none.
        seed: What the weights that are 0 are drawn with.
    """

    scale: float
    reach: Reach
    dropout: float = 0.0
    seed: int = 0

    def kept(self, block: Block, like: Array, xp: ArrayModule) -> Array | None:
        """Factors of weights [sequences, heads, queries, keys]: 0 for those that are dropped; None without dropout.

        What is drawn for a row of queries, a head and a position of a key depends on nothing else but the seed, so the
        gradient draws the same in any blocks, on any place, and in the kernels of other libraries.
        """
        if not self.dropout:
            return None
        heads = like.shape[1]
        rows = block.q.numbers[:, block.queries].astype(np.uint32)
        of_rows = rows[:, None] * np.uint32(heads) + np.arange(heads, dtype=np.uint32)[:, None]
        keys = np.arange(block.keys.start, block.keys.stop, dtype=np.uint32) * np.uint32(0x9E3779B9)
        seeds = xp.asarray(mixed(mixed(of_rows) ^ np.uint32(self.seed)))
        kept = mixed(xp.asarray(keys) ^ seeds[..., None]) >= np.uint32(min(round(self.dropout * 2**32), 2**32 - 1))
        return kept.astype(like.dtype) * like.dtype.type(1 / (1 - self.dropout) if self.dropout < 1 else 0)


def mixed(x: Array) -> Array:
    """A hash of 32 bits each, on all of which each bit of the result depends (lowbias32 of C. Wellons)."""
    x = x ^ (x >> 16)
    x *= np.uint32(0x7FEB352D)
    x ^= x >> 15
    x *= np.uint32(0x846CA68B)
    x ^= x >> 16
    return x


def by_head(x: Array, kv_heads: int) -> Array:
    """[sequences, length, heads, width] as [sequences, kv_heads, heads / kv_heads * length, width]."""
    sequences, length, heads, width = x.shape
    split = x.reshape(sequences, length, kv_heads, heads // kv_heads, width)
    return split.transpose(0, 2, 3, 1, 4).reshape(sequences, kv_heads, -1, width)


def by_row(x: Array, heads: int) -> Array:
    """The way back."""
    sequences, kv_heads, _, width = x.shape
    split = x.reshape(sequences, kv_heads, heads // kv_heads, -1, width)
    return split.transpose(0, 3, 1, 2, 4).reshape(sequences, -1, heads, width)


# OpenBLAS computes a product of so many multiplications on one thread. A batch has many products: threads that wait for
# each other after each of them are no gain, and where others use the cores, a great loss.
_ON_ONE_THREAD = 1 << 18
_FEWEST_ROWS = 16  # of a product that is still a fast one


def product(a: Array, b: Array, xp: ArrayModule) -> Array:
    """a b for each sequence and head, in parts of so many rows as one thread computes where these are not too few."""
    rows, per_row = a.shape[2], a.shape[3] * b.shape[3]
    part = _ON_ONE_THREAD // max(per_row, 1)
    if xp is not np or rows <= part or part < _FEWEST_ROWS:
        return xp.matmul(a, b)
    out = np.empty((*a.shape[:3], b.shape[3]), a.dtype)
    for start in range(0, rows, part):
        np.matmul(a[:, :, start : start + part], b, out=out[:, :, start : start + part])
    return out


class RelativeBiases(NamedTuple):
    """What is added to scores by distance: a table [heads, 2 R + 1]."""

    table: Array

    def columns(self, distance: np.ndarray) -> np.ndarray:
        """The column of each distance."""
        furthest = self.table.shape[1] // 2
        return np.clip(distance, -furthest, furthest) + furthest

    def added(self, block: Block, xp: ArrayModule) -> Array:
        """What is added in a block, [heads, queries, keys]."""
        return self.table[:, xp.asarray(self.columns(block.distance))]

    def gradient(self, of_scores: Array, block: Block, xp: ArrayModule) -> Array:
        """The sums over the pairs of each distance, of a gradient [sequences, heads, queries, keys]."""
        x = of_scores.sum(axis=0)
        heads, a, b = x.shape
        # With rows from the last to the first, each one longer by a than x, a row that is one element shorter is a
        # shift by one, which puts the pairs of a distance below each other.
        wide = xp.zeros((heads, a, a + b), x.dtype)
        wide[:, :, :b] = x[:, ::-1]
        diagonals = wide.reshape(heads, -1)[:, : a * (a + b - 1)].reshape(heads, a, a + b - 1).sum(axis=1)
        columns = self.columns(block.distance[-1, 0] + np.arange(a + b - 1))
        return sum_by_index(diagonals.T, columns, self.table.shape[1], xp).T


class PaddedMask(NamedTuple):
    """What is added to scores by sequence and places: [batch or 1, heads or 1, queries, keys]."""

    values: Array

    def added(self, block: Block, xp: ArrayModule) -> Array:
        """What is added in a block."""
        values = self.values[xp.asarray(block.sequences)] if len(self.values) > 1 else self.values
        return values[:, :, block.queries, block.keys]


Biases = RelativeBiases | PaddedMask


def scores(q: Array, k: Array, biases: Biases | None, heads: int, block: Block, xp: ArrayModule) -> Array:
    """[sequences, heads, queries, keys], -inf for what a query does not see; q by head and scaled, k by head."""
    s = product(q, k.swapaxes(2, 3), xp)
    s = s.reshape(len(s), heads, -1, s.shape[3])
    if biases is not None:
        s += biases.added(block, xp)
    if block.hidden is not None:
        xp.copyto(s, -xp.inf, where=xp.asarray(block.hidden))
    return s


def attend(
    q: Array,
    k: Array,
    v: Array,
    biases: Biases | None,
    offsets: tuple[np.ndarray, np.ndarray],
    settings: Attention,
    xp: ArrayModule,
) -> tuple[Array, Array]:
    """Out [N, heads, vdim] and LogSumExp [N, heads] of rows whose sequences begin at these offsets of q and k."""
    heads, kv_heads = q.shape[1], k.shape[1]
    out = xp.zeros((*q.shape[:2], v.shape[2]), q.dtype)
    lse = xp.full(q.shape[:2], xp.inf, q.dtype)
    scale = q.dtype.type(settings.scale)
    for block in blocks(*offsets, heads, heads * q.shape[2], settings.reach):
        queries = by_head(block.q.take(q, xp)[:, block.queries] * scale, kv_heads)
        keys, values = (by_head(block.k.take(x, xp)[:, block.keys], kv_heads) for x in (k, v))
        p = scores(queries, keys, biases, heads, block, xp)
        most = p.max(axis=3, keepdims=True)
        most[most == -xp.inf] = 0  # a query that sees no key
        p -= most
        xp.exp(p, out=p)
        total = p.sum(axis=3, keepdims=True)
        kept = settings.kept(block, p, xp)
        if kept is not None:
            p *= kept
        found = product(p.reshape(*queries.shape[:3], -1), values, xp)
        seen = total > 0
        found /= xp.where(seen, total, 1).reshape(*found.shape[:3], 1)
        most += xp.log(xp.where(seen, total, 1))
        block.q.put(out, block.queries, by_row(found, heads), xp)
        block.q.put(lse, block.queries, xp.where(seen, most, xp.inf)[..., 0].swapaxes(1, 2), xp)
    return out, lse


class Gradients(NamedTuple):
    """Of queries, keys, values and, where there is one, the bias."""

    q: Array
    k: Array
    v: Array
    bias: Array | None


def attend_grad(
    inputs: tuple[Array, Array, Array, Biases | None],
    results: tuple[Array, Array],
    out_grad: Array,
    offsets: tuple[np.ndarray, np.ndarray],
    settings: Attention,
    xp: ArrayModule,
) -> Gradients:
    """The gradients of attend by its four inputs, whose results are (Out, LogSumExp); weights are computed again."""
    q, k, v, biases = inputs
    heads, kv_heads = q.shape[1], k.shape[1]
    of_bias = xp.zeros_like(biases.table) if isinstance(biases, RelativeBiases) else None
    found = Gradients(xp.zeros_like(q), xp.zeros_like(k), xp.zeros_like(v), of_bias)
    inner = (out_grad * results[0]).sum(axis=2)
    scale = q.dtype.type(settings.scale)

    def of_queries(x: Array, block: Block) -> Array:
        """[sequences, heads, queries, 1] of [N, heads]."""
        return block.q.take(x, xp)[:, block.queries].swapaxes(1, 2)[..., None]

    for block in blocks(*offsets, heads, heads * q.shape[2], settings.reach):
        queries = by_head(block.q.take(q, xp)[:, block.queries] * scale, kv_heads)
        keys, values = (by_head(block.k.take(x, xp)[:, block.keys], kv_heads) for x in (k, v))
        g = by_head(block.q.take(out_grad, xp)[:, block.queries], kv_heads)
        p = scores(queries, keys, biases, heads, block, xp)
        lse = of_queries(results[1], block)
        if not block.q.even:  # places behind an end add nothing
            lse = xp.where(xp.asarray(block.q.valid)[:, None, :, None], lse, xp.inf)
        p -= lse
        xp.exp(p, out=p)
        of_p = product(g, values.swapaxes(2, 3), xp).reshape(p.shape)
        kept = settings.kept(block, p, xp)
        weights = p
        if kept is not None:
            weights, of_p = p * kept, of_p * kept
        flat = (*queries.shape[:3], -1)
        block.k.add(found.v, block.keys, by_row(product(weights.reshape(flat).swapaxes(2, 3), g, xp), kv_heads), xp)
        of_p -= of_queries(inner, block)
        of_p *= p
        if found.bias is not None and isinstance(biases, RelativeBiases):
            found.bias[...] += biases.gradient(of_p, block, xp)
        of_scores = of_p.reshape(flat)
        block.q.put(found.q, block.queries, by_row(product(of_scores, keys, xp) * scale, heads), xp)
        block.k.add(found.k, block.keys, by_row(product(of_scores.swapaxes(2, 3), queries, xp), kv_heads), xp)
    return found


def attend_grad_grad(
    inputs: tuple[Array, Array, Array, Biases | None],
    lse: Array,
    out_grad: Array,
    arrived: Gradients,
    offsets: tuple[np.ndarray, np.ndarray],
    settings: Attention,
    xp: ArrayModule,
) -> tuple[Gradients, Array]:
    """The gradients of attend_grad by its four inputs, and by out_grad, of what arrives for its results."""
    q, k, v, biases = inputs
    heads, kv_heads = q.shape[1], k.shape[1]
    of_bias = xp.zeros_like(biases.table) if isinstance(biases, RelativeBiases) else None
    found = Gradients(xp.zeros_like(q), xp.zeros_like(k), xp.zeros_like(v), of_bias)
    of_out = xp.zeros_like(out_grad)
    scale = q.dtype.type(settings.scale)

    def turned(x: Array) -> Array:
        return x.swapaxes(2, 3)

    for block in blocks(*offsets, heads, heads * q.shape[2], settings.reach):

        def rows(x: Array, block: Block = block) -> Array:
            return by_head(block.q.take(x, xp)[:, block.queries], kv_heads)

        queries, g, a = rows(q) * scale, rows(out_grad), rows(arrived.q) * scale
        keys, values, b, c = (by_head(block.k.take(x, xp)[:, block.keys], kv_heads) for x in (k, v, *arrived[1:3]))
        p = scores(queries, keys, biases, heads, block, xp)
        seen = block.q.take(lse, xp)[:, block.queries].swapaxes(1, 2)[..., None]
        if not block.q.even:
            seen = xp.where(xp.asarray(block.q.valid)[:, None, :, None], seen, xp.inf)
        p = xp.exp(p - seen)
        kept = settings.kept(block, p, xp)
        kept = p.dtype.type(1) if kept is None else kept
        t = (product(a, turned(keys), xp) + product(queries, turned(b), xp)).reshape(p.shape)
        if arrived.bias is not None:
            t = t + RelativeBiases(arrived.bias).added(block, xp)
        of_p = product(g, turned(values), xp).reshape(p.shape) * kept
        inner = of_p - (p * of_p).sum(axis=3, keepdims=True)
        along = (p * t).sum(axis=3, keepdims=True)
        flat = (*queries.shape[:3], -1)
        u = (p * (t - along) * kept).reshape(flat)
        w = t * inner - of_p * along + product(g, turned(c), xp).reshape(p.shape) * kept
        e = p * (w - (p * w).sum(axis=3, keepdims=True))
        if found.bias is not None and isinstance(biases, RelativeBiases):
            found.bias[...] += biases.gradient(e, block, xp)
        e, of_s, weights = e.reshape(flat), (p * inner).reshape(flat), (p * kept).reshape(flat)
        block.q.put(found.q, block.queries, by_row((product(e, keys, xp) + product(of_s, b, xp)) * scale, heads), xp)
        of_k = product(turned(e), queries, xp) + product(turned(of_s), a, xp)
        block.k.add(found.k, block.keys, by_row(of_k, kv_heads), xp)
        block.k.add(found.v, block.keys, by_row(product(turned(u), g, xp), kv_heads), xp)
        block.q.put(of_out, block.queries, by_row(product(u, values, xp) + product(weights, c, xp), heads), xp)
    return found, of_out


# sequence_attention ---------------------------------------------------------------------------------------------------
@kernel("sequence_attention", place=("cpu", "cuda"), dtypes=FLOATS)
def sequence_attention(
    Q: Array,
    K: Array,
    V: Array,
    RelativeBias: Array | None = None,
    *,
    scale: float,
    causal: bool,
    window: list[int],
    dropout_p: float,
    is_test: bool,
    seed: int,
    ctx: KernelContext,
    xp: ArrayModule,
) -> tuple[Array, Array, Array | None]:
    """Two batched products for each block of sequences of like length."""
    drawn = None
    if dropout_p and not is_test:
        drawn = ctx.generator(seed).integers(1, 1 << 31, 1)
    settings = _settings(Q, scale, causal, window, dropout_p, drawn)
    found = attend(Q, K, V, _biases(RelativeBias), _offsets(ctx), settings, xp)
    return *found, None if drawn is None else xp.asarray(drawn)


@kernel("sequence_attention_grad", place=("cpu", "cuda"), dtypes=FLOATS, deterministic={"cpu"})
def sequence_attention_grad(
    Q: Array,
    K: Array,
    V: Array,
    RelativeBias: Array | None = None,
    Out: RequiredArray = None,
    LogSumExp: RequiredArray = None,
    DropoutSeed: Array | None = None,
    Out_grad: RequiredArray = None,
    *,
    scale: float,
    causal: bool,
    window: list[int],
    dropout_p: float,
    ctx: KernelContext,
    xp: ArrayModule,
) -> tuple[Array | None, ...]:
    """Five batched products for each block."""
    settings = _settings(Q, scale, causal, window, dropout_p, DropoutSeed)
    inputs, results = (Q, K, V, _biases(RelativeBias)), (Out, LogSumExp)
    return tuple(attend_grad(inputs, results, Out_grad, _offsets(ctx), settings, xp))


@kernel("sequence_attention_grad_grad", place=("cpu", "cuda"), dtypes=FLOATS, deterministic={"cpu"})
def sequence_attention_grad_grad(
    Q: Array,
    K: Array,
    V: Array,
    RelativeBias: Array | None = None,
    LogSumExp: RequiredArray = None,
    DropoutSeed: Array | None = None,
    Out_grad: RequiredArray = None,
    Q_grad_grad: RequiredArray = None,
    K_grad_grad: RequiredArray = None,
    V_grad_grad: RequiredArray = None,
    RelativeBias_grad_grad: Array | None = None,
    *,
    scale: float,
    causal: bool,
    window: list[int],
    dropout_p: float,
    ctx: KernelContext,
    xp: ArrayModule,
) -> tuple[Array | None, ...]:
    """Ten batched products for each block."""
    settings = _settings(Q, scale, causal, window, dropout_p, DropoutSeed)
    arrived = Gradients(Q_grad_grad, K_grad_grad, V_grad_grad, RelativeBias_grad_grad)
    inputs = (Q, K, V, _biases(RelativeBias))
    found, of_out = attend_grad_grad(inputs, LogSumExp, Out_grad, arrived, _offsets(ctx), settings, xp)
    return *found, of_out


def _biases(table: Array | None) -> RelativeBiases | None:
    return None if table is None else RelativeBiases(table)


def _settings(
    Q: Array, scale: float, causal: bool, window: list[int], dropout_p: float, seed: Array | None
) -> Attention:
    reach, scale = Reach.of(causal, window), scale or Q.shape[2] ** -0.5
    return Attention(scale, reach) if seed is None else Attention(scale, reach, dropout_p, int(host(seed)[0]))


def _offsets(ctx: KernelContext) -> tuple[np.ndarray, np.ndarray]:
    """Where the sequences of queries and of keys begin."""
    q, k = sequence_offsets(ctx, "Q"), sequence_offsets(ctx, "K")
    if len(q) != len(k):
        raise InvalidLoDError(
            f"op {ctx.op_type}: Q has {len(q) - 1} sequences and K {len(k) - 1}; expected as many of each"
        )
    return q, k


# flash_attn_unpadded --------------------------------------------------------------------------------------------------
@kernel("flash_attn_unpadded", place=("cpu", "cuda"), dtypes=FLOATS)
def flash_attn_unpadded(
    q: Array,
    k: Array,
    v: Array,
    cu_seqlens_q: Array,
    cu_seqlens_k: Array,
    fixed_seed_offset: Array | None = None,
    attn_mask: Array | None = None,
    *,
    max_seqlen_q: int,
    max_seqlen_k: int,
    scale: float,
    dropout: float,
    causal: bool,
    return_softmax: bool,
    is_test: bool,
    ctx: KernelContext,
    xp: ArrayModule,
) -> tuple[Array, Array, Array, Array]:
    """As sequence_attention, with LogSumExp as a padded batch; the weights are computed again if they are asked for."""
    if is_test or not dropout:
        drawn = np.zeros(2, np.int64)
    elif fixed_seed_offset is not None:
        drawn = host(fixed_seed_offset).astype(np.int64).reshape(-1)
    else:
        drawn = np.array([int(ctx.generator().integers(1, 1 << 31)), 0])
    settings = Attention(scale, Reach.of(causal), 0.0 if is_test else dropout, int(drawn[0]))
    offsets = _running_lengths(cu_seqlens_q, q, max_seqlen_q, ctx), _running_lengths(cu_seqlens_k, k, max_seqlen_k, ctx)
    mask = None if attn_mask is None else PaddedMask(attn_mask)
    out, lse = attend(q, k, v, mask, offsets, settings, xp)
    places = xp.asarray(segment_ids(offsets[0])), xp.asarray(positions(offsets[0]))
    padded = xp.zeros((len(offsets[0]) - 1, max_seqlen_q, q.shape[1]), np.float32)
    padded[places] = lse
    softmax = xp.zeros(0, q.dtype)
    if return_softmax:
        softmax = _weights(q, k, mask, lse, offsets, settings, (max_seqlen_q, max_seqlen_k), xp)
    return out, softmax, padded.transpose(0, 2, 1).copy(), xp.asarray(drawn)


def _weights(
    q: Array,
    k: Array,
    mask: Biases | None,
    lse: Array,
    offsets: tuple[np.ndarray, np.ndarray],
    settings: Attention,
    longest: tuple[int, int],
    xp: ArrayModule,
) -> Array:
    """[batch, heads, longest, longest], what values are multiplied with."""
    heads = q.shape[1]
    found = xp.zeros((len(offsets[0]) - 1, heads, *longest), q.dtype)
    for block in blocks(*offsets, heads, heads * q.shape[2], settings.reach):
        queries = by_head(block.q.take(q, xp)[:, block.queries] * q.dtype.type(settings.scale), k.shape[1])
        p = scores(queries, by_head(block.k.take(k, xp)[:, block.keys], k.shape[1]), mask, heads, block, xp)
        p = xp.exp(p - block.q.take(lse, xp)[:, block.queries].swapaxes(1, 2)[..., None])
        kept = settings.kept(block, p, xp)
        if not block.q.even:
            p *= xp.asarray(block.q.valid)[:, None, :, None]
        found[xp.asarray(block.sequences), :, block.queries, block.keys] = p if kept is None else p * kept
    return found


def _running_lengths(cu_seqlens: Array, x: Array, longest: int, ctx: KernelContext) -> np.ndarray:
    """Offsets of sequences from the host, after a look whether they fit the rows."""
    offsets = host(cu_seqlens).astype(np.int64).reshape(-1)
    lengths = np.diff(offsets)
    if not len(offsets) or offsets[0] != 0 or offsets[-1] != len(x) or lengths.min(initial=0) < 0:
        raise InvalidArgumentError(
            f"op {ctx.op_type}: cu_seqlens is {offsets.tolist()}; expected offsets that ascend from 0 to the "
            f"{len(x)} rows"
        )
    if lengths.max(initial=0) > longest:
        raise InvalidArgumentError(
            f"op {ctx.op_type}: the longest sequence has {lengths.max()} rows, and max_seqlen is {longest}; expected "
            f"at least {lengths.max()}"
        )
    return offsets


@kernel("flash_attn_unpadded_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def flash_attn_unpadded_grad(
    q: Array,
    k: Array,
    v: Array,
    cu_seqlens_q: Array,
    cu_seqlens_k: Array,
    out: Array,
    softmax_lse: Array,
    seed_offset: Array,
    attn_mask: Array | None = None,
    out_grad: RequiredArray = None,
    *,
    max_seqlen_q: int,
    max_seqlen_k: int,
    scale: float,
    dropout: float,
    causal: bool,
    is_test: bool,
    ctx: KernelContext,
    xp: ArrayModule,
) -> tuple[Array, Array, Array]:
    """As sequence_attention_grad."""
    settings = Attention(scale, Reach.of(causal), 0.0 if is_test else dropout, int(host(seed_offset)[0]))
    offsets = _running_lengths(cu_seqlens_q, q, max_seqlen_q, ctx), _running_lengths(cu_seqlens_k, k, max_seqlen_k, ctx)
    places = xp.asarray(segment_ids(offsets[0])), xp.asarray(positions(offsets[0]))
    lse = softmax_lse.transpose(0, 2, 1)[places].astype(q.dtype)
    mask = None if attn_mask is None else PaddedMask(attn_mask)
    found = attend_grad((q, k, v, mask), (out, lse), out_grad, offsets, settings, xp)
    return found.q, found.k, found.v
