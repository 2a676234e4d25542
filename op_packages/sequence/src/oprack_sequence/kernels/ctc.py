"""Labels without alignment: the loss, the labels of a path, and how far labels are apart."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import LoDTensor
from oprack.types import FLOATS

from oprack_sequence.kernels._lod import (
    absolute_offsets,
    host,
    padded_rows,
    positions,
    segment_ids,
    sequence_offsets,
    with_lod,
)


# ctc ------------------------------------------------------------------------------------------------------------------
# CTC loss of a batch of sequences, and its gradient by the logits.
def ctc_loss(
    logits: Array,
    frames: np.ndarray,
    labels: np.ndarray,
    sizes: np.ndarray,
    blank: int,
    with_grad: bool,
    xp: ArrayModule,
) -> tuple[Any, Any | None]:
    """The CTC loss by the forward-backward algorithm in log space (Graves et al., Connectionist Temporal
    Classification, 2006).

    Args:
        logits: [T, B, C], at the place of xp.
        frames: Number of valid steps of each sequence, on the host.
        labels: [B, S], blank beyond `sizes`, on the host.
        sizes: Length of each label, on the host.
        blank: The class that stands for no label.
        with_grad: Whether to compute the gradient.
        xp: The array library.

    Returns:
        (loss [B], gradient [T, B, C] or None); both 0 for a label that does not fit into its frames.
    """
    steps, batch, _ = logits.shape
    top = logits.max(axis=2, keepdims=True) if logits.size else logits
    exps = xp.exp(logits - top)
    norm = exps.sum(axis=2, keepdims=True)
    log_p = logits - top - xp.log(norm)
    # The states of the recursions: blank, label, blank, label, ..., blank.
    states = np.full((batch, 2 * labels.shape[1] + 1), blank)
    states[:, 1::2] = labels
    count = 2 * sizes + 1
    repeats = ((labels[:, 1:] == labels[:, :-1]) & (np.arange(1, labels.shape[1]) < sizes[:, None])).sum(axis=1)
    # Equal labels in a row need a blank between them, so each repetition takes one more frame.
    fits = (sizes + repeats <= frames) & (frames > 0)
    # Where a path may skip the blank before a label.
    skips = np.zeros(states.shape, bool)
    skips[:, 2:] = (states[:, 2:] != blank) & (states[:, 2:] != states[:, :-2])
    used = xp.asarray(np.arange(states.shape[1]) < count[:, None])
    counted = xp.asarray(fits & (np.arange(steps)[:, None] < frames))
    last, ends = np.maximum(frames - 1, 0), np.stack([count - 1, np.maximum(count - 2, 0)], axis=1)
    last, ends, longer = xp.asarray(last), xp.asarray(ends), xp.asarray(count > 1)
    frames, count, fits, skips, states = (xp.asarray(a) for a in (frames, count, fits, skips, states))
    emit = xp.take_along_axis(log_p, xp.broadcast_to(states, (steps, *states.shape)), axis=2)
    emit = xp.where(used, emit, -xp.inf)
    alpha = _forward(emit, skips, xp)
    final = xp.full((batch, 2), -xp.inf, logits.dtype)
    if steps:
        all_rows = xp.arange(batch)
        final[:, 0] = alpha[last, all_rows, ends[:, 0]]
        final[:, 1] = xp.where(longer, alpha[last, all_rows, ends[:, 1]], -xp.inf)
    with np.errstate(invalid="ignore", divide="ignore"):
        log_total = xp.where(fits, xp.logaddexp(final[:, 0], final[:, 1]), 0).astype(logits.dtype)
    if not with_grad:
        return -log_total, None
    beta = _backward(emit, skips, frames, count, xp)
    with np.errstate(invalid="ignore"):
        posterior = xp.exp(alpha + beta - log_total[:, None])
    posterior = xp.where(counted[:, :, None] & used, posterior, 0)
    grad = xp.where(counted[:, :, None], exps / norm, 0)
    rows = xp.arange(steps * batch).reshape(steps, batch, 1)
    xp.subtract.at(grad.reshape(steps * batch, logits.shape[2]), (rows, states), posterior)
    return -log_total, grad


def _forward(emit: Array, skips: Array, xp: ArrayModule) -> Array:
    """[T, B, states]: log of the weight of all paths into each state, its own emission included."""
    alpha = xp.full_like(emit, -xp.inf)
    for t in range(len(emit)):
        if t == 0:
            alpha[0, :, :2] = emit[0, :, :2]
            continue
        before = alpha[t - 1]
        into = before.copy()
        into[:, 1:] = xp.logaddexp(into[:, 1:], before[:, :-1])
        into[:, 2:] = xp.where(skips[:, 2:], xp.logaddexp(into[:, 2:], before[:, :-2]), into[:, 2:])
        alpha[t] = into + emit[t]
    return alpha


def _backward(emit: Array, skips: Array, frames: Array, count: Array, xp: ArrayModule) -> Array:
    """[T, B, states]: log of the weight of all paths out of each state, its own emission left out."""
    beta = xp.full_like(emit, -xp.inf)
    state = xp.arange(emit.shape[2])
    ends = (state == count[:, None] - 1) | (state == count[:, None] - 2)
    start = xp.where(ends, 0, -xp.inf).astype(emit.dtype)
    for t in range(len(emit) - 1, -1, -1):
        is_last = (frames - 1 == t)[:, None]
        if t == len(emit) - 1:
            beta[t] = xp.where(is_last, start, -xp.inf)
            continue
        after = beta[t + 1] + emit[t + 1]
        out = after.copy()
        out[:, :-1] = xp.logaddexp(out[:, :-1], after[:, 1:])
        out[:, :-2] = xp.where(skips[:, 2:], xp.logaddexp(out[:, :-2], after[:, 2:]), out[:, :-2])
        beta[t] = xp.where(is_last, start, out)
    return beta


# ctc_align ------------------------------------------------------------------------------------------------------------
@kernel("ctc_align", dtypes={"int32", "int64"})
def ctc_align(
    Input: Array,
    InputLength: Array | None = None,
    *,
    blank: int,
    merge_repeated: bool,
    padding_value: int,
    ctx: KernelContext,
) -> dict[str, LoDTensor | None] | tuple[Array, Array]:
    """One mask over all ids."""
    if InputLength is not None:
        lengths = InputLength.reshape(-1, 1)
        inside = np.arange(Input.shape[1]) < lengths
        kept = inside & (Input != blank)
        if merge_repeated:
            kept[:, 1:] &= Input[:, 1:] != Input[:, :-1]
        counts = kept.sum(axis=1)
        out = np.full_like(Input, padding_value)
        out[np.arange(Input.shape[1]) < counts[:, None]] = Input[kept]
        return out, counts.astype(InputLength.dtype)[:, None]
    sequence_offsets(ctx, "Input")  # an error when there is no LoD
    offsets = absolute_offsets(ctx.lod("Input"), 0)
    ids = Input.reshape(-1)
    kept = ids != blank
    if merge_repeated:
        kept[1:] &= (ids[1:] != ids[:-1]) | (positions(offsets)[1:] == 0)
    counts = np.bincount(segment_ids(offsets)[kept], minlength=len(offsets) - 1)
    out = Input[kept].reshape(-1, 1)
    if not len(out):
        out = np.full((1, 1), -1, Input.dtype)
    return {"Output": with_lod(out, [np.concatenate([[0], np.cumsum(counts)])]), "OutputLength": None}


# edit_distance --------------------------------------------------------------------------------------------------------
@kernel("edit_distance", dtypes={"int32", "int64"})
def edit_distance(
    Hyps: Array,
    Refs: Array,
    HypsLength: Array | None = None,
    RefsLength: Array | None = None,
    *,
    normalized: bool,
    ctx: KernelContext,
) -> tuple[Array, Array]:
    """Rows of the distance table for all pairs at once; within a row, insertions are a running minimum."""
    hyps, m = _padded(Hyps, HypsLength, "Hyps", ctx)
    refs, n = _padded(Refs, RefsLength, "Refs", ctx)
    if len(m) != len(n):
        raise InvalidArgumentError(f"op {ctx.op_type}: Hyps has {len(m)} sequences and Refs {len(n)}; expected as many")
    if normalized and not n.all():
        raise InvalidArgumentError(
            f"op {ctx.op_type}: reference {int(np.flatnonzero(n == 0)[0])} is empty; a normalized distance needs "
            "references of at least one token (or set normalized to False)"
        )
    column = np.arange(refs.shape[1] + 1)
    row = np.tile(column, (len(m), 1))
    for i in range(hyps.shape[1]):
        new = np.empty_like(row)
        new[:, 0] = i + 1
        substituted = row[:, :-1] + (refs != hyps[:, i, None])
        new[:, 1:] = np.minimum(row[:, 1:] + 1, substituted)
        new = np.minimum.accumulate(new - column, axis=1) + column
        row = np.where((i < m)[:, None], new, row)
    distance = row[np.arange(len(m)), n].astype(np.float32)
    if normalized:
        distance /= n
    return np.array([len(m)], np.int64), distance[:, None]


def _padded(tokens: Array, length: Array | None, slot: str, ctx: KernelContext) -> tuple[Array, Array]:
    """(tokens [pairs, longest], lengths)."""
    if length is not None:
        lengths = length.reshape(-1).astype(np.int64)
        tokens = tokens.reshape(tokens.shape[:2])
        if (lengths < 0).any() or (lengths > tokens.shape[1]).any():
            raise InvalidArgumentError(
                f"op {ctx.op_type}: {slot}Length is {lengths.tolist()}; expected from 0 to {tokens.shape[1]}, "
                f"the width of {slot}"
            )
        return tokens, lengths
    offsets = sequence_offsets(ctx, slot)
    lengths = np.diff(offsets)
    rows, _ = padded_rows(offsets, int(lengths.max(initial=0)))
    flat = tokens.reshape(-1)
    return (flat[rows] if len(flat) else rows.astype(flat.dtype)), lengths


# warpctc --------------------------------------------------------------------------------------------------------------
@kernel("warpctc", place=("cpu", "cuda"), dtypes=FLOATS, deterministic={"cpu"})
def warpctc(
    Logits: Array,
    Label: Array,
    LogitsLength: Array | None = None,
    LabelLength: Array | None = None,
    *,
    blank: int,
    ctx: KernelContext,
    xp: ArrayModule,
) -> tuple[Array, Array | None]:
    """Both recursions in log space over all sequences at once; the backward one only when a gradient is asked for."""
    if LogitsLength is None:
        offsets = sequence_offsets(ctx, "Logits")
        frames = np.diff(offsets)
        rows, _ = padded_rows(offsets, int(frames.max(initial=0)))
        empty = (0, len(frames), Logits.shape[1])
        logits = Logits[xp.asarray(rows.T)] if len(Logits) else xp.zeros(empty, Logits.dtype)
    else:
        frames, logits = _lengths(LogitsLength, Logits.shape[0], "LogitsLength", ctx), Logits
    labels, sizes = _labels(Label, LabelLength, logits.shape[-1], blank, ctx)
    if not len(frames) == len(sizes) == logits.shape[1]:
        raise InvalidArgumentError(
            f"op {ctx.op_type}: {logits.shape[1]} sequences of logits with {len(frames)} lengths, but {len(sizes)} "
            "label sequences; expected as many of each"
        )
    loss, grad = ctc_loss(logits, frames, labels, sizes, blank, ctx.wants("WarpCTCGrad"), xp)
    return loss[:, None], grad


@kernel("warpctc_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def warpctc_grad(
    WarpCTCGrad: Array,
    Loss_grad: Array,
    LogitsLength: Array | None = None,
    *,
    norm_by_times: bool,
    ctx: KernelContext,
    xp: ArrayModule,
) -> Array:
    """One product, and for LoD one gather."""
    weight = Loss_grad.reshape(-1)
    offsets: Any = None if LogitsLength is not None else sequence_offsets(ctx, "Logits")
    if norm_by_times:
        frames = np.diff(offsets) if LogitsLength is None else host(LogitsLength).reshape(-1)
        weight = weight / xp.asarray(np.maximum(frames, 1).astype(weight.dtype))
    grad = WarpCTCGrad * weight[:, None]
    if offsets is None:
        return grad
    return grad[xp.asarray(positions(offsets)), xp.asarray(segment_ids(offsets))]


def _lengths(length: Array, longest: int, slot: str, ctx: KernelContext) -> Array:
    """Lengths, checked."""
    lengths = host(length).reshape(-1).astype(np.int64)
    if (lengths < 0).any() or (lengths > longest).any():
        raise InvalidArgumentError(f"op {ctx.op_type}: {slot} is {lengths.tolist()}; expected from 0 to {longest}")
    return lengths


def _labels(
    Label: Array, LabelLength: Array | None, classes: int, blank: int, ctx: KernelContext
) -> tuple[Array, Array]:
    """(labels [B, longest], lengths), on the host: they are few, and looked through."""
    Label = host(Label)
    if LabelLength is not None:
        labels = Label.reshape(Label.shape[:2])
        sizes = _lengths(LabelLength, labels.shape[1], "LabelLength", ctx)
    else:
        offsets = sequence_offsets(ctx, "Label")
        sizes = np.diff(offsets)
        rows, _ = padded_rows(offsets, int(sizes.max(initial=0)))
        flat = Label.reshape(-1)
        labels = flat[rows] if len(flat) else np.zeros(rows.shape, flat.dtype)
    inside = np.arange(labels.shape[1]) < sizes[:, None]
    used = labels[inside]
    if len(used) and not (0 <= used.min() and used.max() < classes):
        raise InvalidArgumentError(
            f"op {ctx.op_type}: Label lies in [{used.min()}, {used.max()}]; expected classes of Logits, "
            f"from 0 to {classes - 1}"
        )
    return np.where(inside, labels, blank).astype(np.int64), sizes


# warprnnt -------------------------------------------------------------------------------------------------------------
def _checked(name: str, values: Array, low: int, high: int) -> Array:
    found = values.astype(np.int64)
    if found.size and not (low <= found.min() and found.max() <= high):
        raise InvalidArgumentError(
            f"op warprnnt: {name} lies in [{found.min()}, {found.max()}]; expected from {low} to {high}"
        )
    return found


@kernel("warprnnt", dtypes=FLOATS)
def warprnnt(
    input: Array,
    label: Array,
    input_lengths: Array,
    label_lengths: Array,
    *,
    blank: int,
    fastemit_lambda: float,
    ctx: KernelContext,
) -> tuple[Array, Array | None]:
    """Both recursions in log space, all sequences at once, along the diagonals t + u of the grid."""
    batch, steps, places, classes = input.shape
    frames = _checked("input_lengths", input_lengths, 1, steps)
    sizes = _checked("label_lengths", label_lengths, 0, places - 1)
    used = np.arange(places - 1) < sizes[:, None]
    labels = np.where(used, _checked("label", np.where(used, label, 0), 0, classes - 1), 0)
    t, u = np.arange(steps)[:, None], np.arange(places)
    inside = (t < frames[:, None, None]) & (u <= sizes[:, None, None])
    # A step beyond the last frame or label is none; the last blank leaves the grid.
    blanks = np.where(inside & (t < frames[:, None, None] - 1), input[..., blank], -np.inf)
    index = np.broadcast_to(labels[:, None, :, None], (batch, steps, places - 1, 1))
    spoken = np.take_along_axis(input[:, :, :-1], index, axis=3)[..., 0]
    emits = np.where((inside & (u < sizes[:, None, None]))[:, :, :-1], spoken, -np.inf)
    rows = np.arange(batch)
    ends = input[rows, frames - 1, sizes, blank]
    alpha = _swept(blanks, emits, (np.zeros(batch, np.int64), np.zeros(batch, np.int64)), np.zeros(batch), 1)
    total = alpha[rows, frames - 1, sizes] + ends
    if not ctx.wants("warprnntgrad"):
        return -total, None
    beta = _swept(blanks, emits, (frames - 1, sizes), ends, -1)
    grad = np.zeros_like(input)
    reach = alpha - total[:, None, None]
    after_blank, after_emit = np.full_like(beta, -np.inf), np.full_like(beta, -np.inf)
    after_blank[:, :-1] = blanks[:, :-1] + beta[:, 1:]
    after_blank[rows, frames - 1, sizes] = ends
    after_emit[:, :, :-1] = emits + beta[:, :, 1:]
    grad[..., blank] = -np.exp(reach + after_blank)
    by_emit = np.exp(reach + after_emit)[:, :, :-1, None] * (1 + fastemit_lambda)
    np.put_along_axis(grad[:, :, :-1], index, np.take_along_axis(grad[:, :, :-1], index, axis=3) - by_emit, axis=3)
    return -total, grad


def _swept(blanks: Array, emits: Array, start: tuple[Array, Array], first: Array, sign: int) -> Array:
    """[B, T, U + 1]: log of the weight of all paths from (or, with sign -1, to) the start.

    On the way there a step enters its place, on the way back it leaves it.
    """
    batch, steps, places = blanks.shape
    out = np.full(blanks.shape, -np.inf, blanks.dtype)
    rows = np.arange(batch)
    for d in range(steps + places - 1)[::sign]:
        t = np.arange(max(0, d - places + 1), min(steps, d + 1))
        u = d - t
        found = np.full((batch, len(t)), -np.inf, blanks.dtype)
        if sign > 0:
            a, b = t > 0, u > 0
            found[:, a] = out[:, t[a] - 1, u[a]] + blanks[:, t[a] - 1, u[a]]
            found[:, b] = np.logaddexp(found[:, b], out[:, t[b], u[b] - 1] + emits[:, t[b], u[b] - 1])
        else:
            a, b = t < steps - 1, u < places - 1
            found[:, a] = out[:, t[a] + 1, u[a]] + blanks[:, t[a], u[a]]
            found[:, b] = np.logaddexp(found[:, b], out[:, t[b], u[b] + 1] + emits[:, t[b], u[b]])
        out[:, t, u] = found
        here = start[0] + start[1] == d
        out[rows[here], start[0][here], start[1][here]] = first[here]
    return out


@kernel("warprnnt_grad", dtypes=FLOATS)
def warprnnt_grad(warprnntgrad: Array, loss_grad: Array) -> Array:
    """One product."""
    return warprnntgrad * loss_grad.reshape(-1, 1, 1, 1)
