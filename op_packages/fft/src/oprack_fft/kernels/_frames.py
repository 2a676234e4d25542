"""Frames of a signal, and the sum of frames."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule


def frames_of(x: Array, length: int, hop: int, xp: ArrayModule) -> Array:
    """[..., F, length]: a view of x [..., N] with a frame in each row."""
    count = 1 + (x.shape[-1] - length) // hop
    strides = (*x.strides[:-1], hop * x.strides[-1], x.strides[-1])
    return xp.lib.stride_tricks.as_strided(x, shape=(*x.shape[:-1], count, length), strides=strides)


def sum_of_frames(frames: Array, hop: int, size: int, xp: ArrayModule) -> Array:
    """[..., size]: the sum of frames [..., F, length], each `hop` steps after the one before.

    Frames are cut into pieces of one hop, and the pieces of the same number lie side by side in the result.
    """
    *batch, count, length = frames.shape
    pieces = -(-length // hop)
    out = xp.zeros((*batch, max(count + pieces - 1, -(-size // hop)), hop), frames.dtype)
    for i in range(pieces):
        piece = frames[..., i * hop : (i + 1) * hop]
        out[..., i : i + count, : piece.shape[-1]] += piece
    return out.reshape(*batch, out.shape[-2] * hop)[..., :size].copy()
