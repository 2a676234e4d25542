"""CTC loss of a batch of sequences, and its gradient by the logits."""

from __future__ import annotations

import numpy as np


def ctc_loss(
    logits: np.ndarray, frames: np.ndarray, labels: np.ndarray, sizes: np.ndarray, blank: int, with_grad: bool
) -> tuple[np.ndarray, np.ndarray | None]:
    """(loss [B], gradient [T, B, C] or None); both 0 for a label that does not fit into its frames.

    logits: [T, B, C]. frames: valid steps of each sequence. labels: [B, S], blank past `sizes`.
    Graves et al., Connectionist Temporal Classification (2006), in log space.
    """
    steps, batch, _ = logits.shape
    top = logits.max(axis=2, keepdims=True) if logits.size else logits
    exps = np.exp(logits - top)
    norm = exps.sum(axis=2, keepdims=True)
    log_p = logits - top - np.log(norm)
    # labels with blanks around each: states of the recursions
    states = np.full((batch, 2 * labels.shape[1] + 1), blank)
    states[:, 1::2] = labels
    count = 2 * sizes + 1
    used = np.arange(states.shape[1]) < count[:, None]
    repeats = ((labels[:, 1:] == labels[:, :-1]) & (np.arange(1, labels.shape[1]) < sizes[:, None])).sum(axis=1)
    fits = (sizes + repeats <= frames) & (frames > 0)
    skips = np.zeros(states.shape, bool)
    skips[:, 2:] = (states[:, 2:] != blank) & (states[:, 2:] != states[:, :-2])
    emit = np.take_along_axis(log_p, np.broadcast_to(states, (steps, *states.shape)), axis=2)
    emit = np.where(used, emit, -np.inf)
    alpha = _forward(emit, skips)
    every = np.arange(batch)
    last = np.maximum(frames - 1, 0)
    final = np.full((batch, 2), -np.inf, logits.dtype)
    if steps:
        final[:, 0] = alpha[last, every, count - 1]
        final[:, 1] = np.where(count > 1, alpha[last, every, np.maximum(count - 2, 0)], -np.inf)
    with np.errstate(invalid="ignore", divide="ignore"):
        log_total = np.where(fits, np.logaddexp(final[:, 0], final[:, 1]), 0).astype(logits.dtype)
    if not with_grad:
        return -log_total, None
    beta = _backward(emit, skips, frames, count)
    with np.errstate(invalid="ignore"):
        posterior = np.exp(alpha + beta - log_total[:, None])
    counted = fits & (np.arange(steps)[:, None] < frames)
    posterior = np.where(counted[:, :, None] & used, posterior, 0)
    grad = np.where(counted[:, :, None], exps / norm, 0)
    rows = np.arange(steps * batch).reshape(steps, batch, 1)
    np.subtract.at(grad.reshape(steps * batch, logits.shape[2]), (rows, states), posterior)
    return -log_total, grad


def _forward(emit: np.ndarray, skips: np.ndarray) -> np.ndarray:
    """[T, B, states]: log of the weight of all paths into each state, its own emission included."""
    alpha = np.full_like(emit, -np.inf)
    for t in range(len(emit)):
        if t == 0:
            alpha[0, :, :2] = emit[0, :, :2]
            continue
        before = alpha[t - 1]
        into = before.copy()
        into[:, 1:] = np.logaddexp(into[:, 1:], before[:, :-1])
        into[:, 2:] = np.where(skips[:, 2:], np.logaddexp(into[:, 2:], before[:, :-2]), into[:, 2:])
        alpha[t] = into + emit[t]
    return alpha


def _backward(emit: np.ndarray, skips: np.ndarray, frames: np.ndarray, count: np.ndarray) -> np.ndarray:
    """[T, B, states]: log of the weight of all paths out of each state, its own emission left out."""
    beta = np.full_like(emit, -np.inf)
    state = np.arange(emit.shape[2])
    ends = (state == count[:, None] - 1) | (state == count[:, None] - 2)
    start = np.where(ends, 0, -np.inf).astype(emit.dtype)
    for t in range(len(emit) - 1, -1, -1):
        is_last = (frames - 1 == t)[:, None]
        if t == len(emit) - 1:
            beta[t] = np.where(is_last, start, -np.inf)
            continue
        after = beta[t + 1] + emit[t + 1]
        out = after.copy()
        out[:, :-1] = np.logaddexp(out[:, :-1], after[:, 1:])
        out[:, :-2] = np.where(skips[:, 2:], np.logaddexp(out[:, :-2], after[:, 2:]), out[:, :-2])
        beta[t] = np.where(is_last, start, out)
    return beta
