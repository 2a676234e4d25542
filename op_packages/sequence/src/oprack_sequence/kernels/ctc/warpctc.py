"""Kernels of warpctc."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS

from oprack_sequence.kernels._lod import host, padded_rows, positions, segment_ids, sequence_offsets
from oprack_sequence.kernels.ctc._ctc import ctc_loss


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
) -> tuple[Array, Array]:
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
    offsets = None if LogitsLength is not None else sequence_offsets(ctx, "Logits")
    if norm_by_times:
        frames = host(LogitsLength).reshape(-1) if offsets is None else np.diff(offsets)
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
