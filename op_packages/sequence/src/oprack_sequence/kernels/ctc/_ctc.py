"""CTC loss of a batch of sequences, and its gradient by the logits."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.kernel import Array, ArrayModule


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
