"""Sizes along the dims that a window slides over: convolutions and pooling, of any pack."""

from __future__ import annotations

from collections.abc import Sequence

Pads = list[tuple[int, int]]


def pad_pairs(paddings: Sequence[int], rank: int) -> Pads:
    """(before, after) per spatial dim from a list of one per dim, or of one per side."""
    if len(paddings) == rank:
        return [(p, p) for p in paddings]
    return [(paddings[2 * i], paddings[2 * i + 1]) for i in range(rank)]


def resolve_pads(
    algorithm: str, paddings: Sequence[int], spatial: Sequence[int], ksize: Sequence[int], strides: Sequence[int]
) -> Pads:
    """(before, after) per spatial dim. SAME gives ceil(in / stride) outputs, VALID pads nothing.

    SAME counts the kernel without dilation, as Paddle, which convolves with dilation 1 then.
    """
    if algorithm == "VALID":
        return [(0, 0)] * len(spatial)
    if algorithm == "SAME":
        total = [max((-(-x // s) - 1) * s + k - x, 0) for x, k, s in zip(spatial, ksize, strides, strict=True)]
        return [(t // 2, t - t // 2) for t in total]
    return pad_pairs(paddings, len(spatial))


def conv_out(size: int, k: int, pad: tuple[int, int], stride: int, dilation: int) -> int:
    """Outputs along one dim; -1 when the input's size or the kernel's is not known."""
    return -1 if size < 0 or k < 0 else (size + pad[0] + pad[1] - (dilation * (k - 1) + 1)) // stride + 1
