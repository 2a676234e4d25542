"""Kernels of rows by their place in a sequence."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidLoDError
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import LoDTensor, ShapeOnly
from oprack.types import FLOATS, INTEGERS

from oprack_sequence.kernels._blocks import alike
from oprack_sequence.kernels._lod import offsets_of, positions, segment_ids, sequence_offsets, with_lod

BOTH = ("cpu", "cuda")


# sequence_positions ---------------------------------------------------------------------------------------------------
@kernel("sequence_positions", place=BOTH)
def sequence_positions(X: ShapeOnly, Before: ShapeOnly | None = None, *, ctx: KernelContext, xp: ArrayModule) -> Array:
    """Computed where LoD lives."""
    offsets = sequence_offsets(ctx, "X")
    found = positions(offsets)
    if Before is not None:
        before = np.diff(sequence_offsets(ctx, "Before"))
        if len(before) != len(offsets) - 1:
            raise InvalidLoDError(
                f"op {ctx.op_type}: X has {len(offsets) - 1} sequences and Before {len(before)}; expected as many"
            )
        found += np.repeat(before, np.diff(offsets))
    return xp.asarray(found)


# rotary_embedding -----------------------------------------------------------------------------------------------------
@kernel("rotary_embedding", place=BOTH, dtypes=FLOATS)
def rotary_embedding(
    X: Array, Positions: Array, *, base: float, turned: int, interleaved: bool, inverse: bool, xp: ArrayModule
) -> Array:
    """Angles in float64, as positions may be large; then two products for each half of the pairs."""
    d = turned or X.shape[-1]
    speeds = xp.asarray(base ** (-np.arange(0, d, 2) / max(d, 1)))
    angles = Positions.astype(np.float64)[..., None] * speeds
    cos, sin = (f(angles).astype(X.dtype)[..., None, :] for f in (xp.cos, xp.sin))
    if inverse:
        sin = -sin
    first, second = (slice(0, d, 2), slice(1, d, 2)) if interleaved else (slice(0, d // 2), slice(d // 2, d))
    out = xp.array(X)
    out[..., first] = X[..., first] * cos - X[..., second] * sin
    out[..., second] = X[..., first] * sin + X[..., second] * cos
    return out


# sequence_cumsum ------------------------------------------------------------------------------------------------------
@kernel("sequence_cumsum", place=BOTH, dtypes=FLOATS | INTEGERS)
def sequence_cumsum(X: Array, *, exclusive: bool, reverse: bool, ctx: KernelContext, xp: ArrayModule) -> Array:
    """One running sum for sequences of like length, each from its own first row."""
    out = xp.zeros_like(X)
    for rows in alike(sequence_offsets(ctx, "X"), int(np.prod(X.shape[1:]))):
        x = rows.take(X, xp)
        if not rows.even:  # what lies behind an end is no row of the sequence
            x[~xp.asarray(rows.valid)] = 0
        sums = xp.cumsum(x[:, ::-1] if reverse else x, axis=1, dtype=X.dtype)
        if exclusive:
            sums = xp.concatenate([xp.zeros_like(sums[:, :1]), sums[:, :-1]], axis=1)
        rows.put(out, slice(None), sums[:, ::-1] if reverse else sums, xp)
    return out


# sequence_shift -------------------------------------------------------------------------------------------------------
@kernel("sequence_shift", place=BOTH, dtypes=FLOATS | INTEGERS | {"bool"})
def sequence_shift(X: Array, *, offset: int, fill: float, ctx: KernelContext, xp: ArrayModule) -> Array:
    """One move of all rows, and the fill where they came from another sequence."""
    offsets = sequence_offsets(ctx, "X")
    source = positions(offsets) - offset
    inside = (source >= 0) & (source < np.repeat(np.diff(offsets), np.diff(offsets)))
    rows = np.flatnonzero(inside)
    out = xp.full_like(X, fill)
    out[xp.asarray(rows)] = X[xp.asarray(rows - offset)]
    return out


# sequence_unfold ------------------------------------------------------------------------------------------------------
def _windows(
    offsets: np.ndarray, size: int, stride: int, dilation: int, padding: list[int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(row of X at each place of each window, whether there is one [windows, size], offsets of the windows)."""
    lengths = np.diff(offsets)
    counts = (lengths + sum(padding) - dilation * (size - 1) - 1) // stride + 1
    out = offsets_of(np.where(lengths > 0, np.maximum(counts, 0), 0))
    sequence = segment_ids(out)
    place = (positions(out) * stride - padding[0])[:, None] + dilation * np.arange(size)
    inside = (place >= 0) & (place < lengths[sequence][:, None])
    return place + offsets[sequence][:, None], inside, out


@kernel("sequence_unfold", place=BOTH, dtypes=FLOATS | INTEGERS)
def sequence_unfold(
    X: Array, *, size: int, stride: int, dilation: int, padding: list[int], ctx: KernelContext, xp: ArrayModule
) -> LoDTensor:
    """One gather of rows and of a row of zeros."""
    rows, inside, offsets = _windows(sequence_offsets(ctx, "X"), size, stride, dilation, padding)
    with_zeros = xp.concatenate([X, xp.zeros((1, *X.shape[1:]), X.dtype)])
    out = with_zeros.take(xp.asarray(np.where(inside, rows, len(X))), axis=0)
    return with_lod(out, [*ctx.lod("X")[:-1], offsets])


@kernel("sequence_unfold_grad", place=BOTH, dtypes=FLOATS | INTEGERS)
def sequence_unfold_grad(
    X: ShapeOnly,
    Out_grad: Array,
    *,
    size: int,
    stride: int,
    dilation: int,
    padding: list[int],
    ctx: KernelContext,
    xp: ArrayModule,
) -> Array:
    """A row is at one place j of at most one window, so that sums are one addition for each j."""
    rows, inside, _ = _windows(sequence_offsets(ctx, "X"), size, stride, dilation, padding)
    x_grad = xp.zeros(X.shape, Out_grad.dtype)
    for j in range(size):
        windows = np.flatnonzero(inside[:, j])
        x_grad[xp.asarray(rows[windows, j])] += Out_grad[xp.asarray(windows), j]
    return x_grad
