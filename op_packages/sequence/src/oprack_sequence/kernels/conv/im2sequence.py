"""Kernels of im2sequence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import LoDTensor
from oprack.types import FLOATS

from oprack_sequence.kernels._lod import host, offsets_of, positions, segment_ids, with_lod


@kernel("im2sequence", place=("cpu", "cuda"), dtypes=FLOATS)
def im2sequence(
    X: Array,
    Y: Array | None = None,
    *,
    kernels: list[int],
    strides: list[int],
    paddings: list[int],
    out_stride: list[int],
    xp: ArrayModule,
) -> LoDTensor:
    """One gather of pixels; those outside an image read zeros that X is surrounded with."""
    sizes = None
    if Y is not None and len(X) > 1:  # Paddle looks at Y from two images on
        sizes = -(-host(Y).astype(np.int64).reshape(-1, 2) // np.asarray(out_stride))
    places, margin, offsets = _places(X.shape, sizes, kernels, strides, paddings)
    padded = xp.pad(X, ((0, 0), (0, 0), *margin))
    image, channel, row, column = (xp.asarray(p) for p in places)
    return with_lod(
        padded[image, channel, row, column].reshape(offsets[-1], X.shape[1] * kernels[0] * kernels[1]), [offsets]
    )


@kernel("im2sequence_grad", place=("cpu", "cuda"), dtypes=FLOATS, deterministic={"cpu"})
def im2sequence_grad(
    X: Array, Out_grad: Array, *, kernels: list[int], strides: list[int], paddings: list[int], xp: ArrayModule
) -> Array:
    """The transposed gather: an addition at each pixel read."""
    places, margin, offsets = _places(X.shape, None, kernels, strides, paddings)
    (up, down), (left, right) = margin
    height, width = X.shape[2:]
    padded = xp.zeros((*X.shape[:2], height + up + down, width + left + right), Out_grad.dtype)
    windows = Out_grad.reshape(offsets[-1], X.shape[1], *kernels)
    xp.add.at(padded, tuple(xp.asarray(p) for p in places), windows)
    return xp.ascontiguousarray(padded[:, :, up : up + height, left : left + width])


def _places(
    shape: tuple[int, ...], sizes: Array | None, kernels: Sequence[int], strides: Sequence[int], paddings: Sequence[int]
) -> tuple[tuple[Array, ...], list[tuple[int, int]], Array]:
    """(image, channel, row and column of each element [windows, C, kh, kw]; margins of zeros; windows of each image).

    sizes: rows and columns of each image that count, or None for all of X.
    """
    batch, channels, *whole = shape
    if sizes is None:
        sizes = np.tile(whole, (batch, 1))
    counts = _window_counts(sizes, kernels, strides, paddings)
    offsets = offsets_of(counts.prod(axis=1))
    image, k = segment_ids(offsets), positions(offsets)
    across = counts[image, 1]
    starts = np.stack([k // across, k % across], axis=1) * strides - paddings[:2]
    margin = [
        (max(0, -int(starts[:, a].min(initial=0))), max(0, int(starts[:, a].max(initial=0)) + kernels[a] - whole[a]))
        for a in range(2)
    ]
    rows = starts[:, 0, None] + margin[0][0] + np.arange(kernels[0])
    columns = starts[:, 1, None] + margin[1][0] + np.arange(kernels[1])
    channel = np.arange(channels)[:, None, None]
    return (image[:, None, None, None], channel, rows[:, None, :, None], columns[:, None, None, :]), margin, offsets


def _window_counts(sizes: Array, kernels: Sequence[int], strides: Sequence[int], paddings: Sequence[int]) -> Array:
    """[B, 2]: windows down and across each image."""
    pads = np.asarray(paddings)
    return np.maximum((sizes + pads[:2] + pads[2:] - kernels) // strides + 1, 0)
