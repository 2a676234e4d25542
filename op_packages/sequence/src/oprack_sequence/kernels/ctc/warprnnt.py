"""Kernels of warprnnt and of its gradient."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, KernelContext, kernel
from oprack.types import FLOATS


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
