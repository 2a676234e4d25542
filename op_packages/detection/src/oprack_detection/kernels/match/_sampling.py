"""What rpn_target_assign, retinanet_target_assign and generate_proposal_labels share: overlaps, samples, codes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, KernelContext
from oprack.tensor import LoDTensor

from oprack_detection.kernels._boxes import overlaps

Sample = Callable[[Array, int], Array]
_NEAR = 1e-5  # overlaps of less difference count as equal


def sampler(ctx: KernelContext, use_random: bool) -> Sample:
    """A function (candidates, count) -> at most `count` of them, in their order: drawn, or the first."""
    if not use_random:
        return lambda candidates, count: candidates[: max(count, 0)]
    random = ctx.generator()

    def draw(candidates: Array, count: int) -> Array:
        if len(candidates) <= count:
            return candidates
        return np.sort(random.choice(candidates, max(count, 0), replace=False))

    return draw


def codes(boxes: Array, targets: Array) -> Array:
    """Targets [K, 4] relative to boxes [K, 4], both in pixels."""
    kind = boxes.dtype.type
    size, wanted = (b[:, 2:] - b[:, :2] + kind(1) for b in (boxes, targets))
    shift = (targets[:, :2] + kind(0.5) * wanted) - (boxes[:, :2] + kind(0.5) * size)
    return np.concatenate([shift / size, np.log(wanted / size)], axis=1)


def closest(boxes: Array, gt: Array) -> tuple[Array, Array, Array]:
    """(overlaps [K, G], the greatest of each box, where it is); 0 and 0 without ground truth."""
    near = overlaps(boxes[:, None], gt[None], 1, np)
    if not len(gt):
        return near, np.zeros(len(boxes), boxes.dtype), np.zeros(len(boxes), np.int64)
    return near, near.max(axis=1), near.argmax(axis=1)


def images_of(op_type: str, ctx: KernelContext, slots: Sequence[str], images: int) -> list[list[tuple[int, int]]]:
    """(begin, end) of the rows of each image, for each slot. Raises InvalidArgumentError when the counts differ."""
    ranges = []
    for slot in slots:
        lod = ctx.lod(slot)
        if not lod or len(lod[-1]) != images + 1:
            raise InvalidArgumentError(
                f"op {op_type}: {slot} has LoD {lod}; expected one level with a sequence for each of {images} images, "
                "the rows of ImInfo"
            )
        ranges.append(list(pairwise(lod[-1])))
    return ranges


def joined(parts: Sequence[Array]) -> LoDTensor:
    """The arrays of the images one after another, with their lengths as LoD."""
    return LoDTensor(np.concatenate(parts), [[0, *np.cumsum([len(p) for p in parts]).tolist()]])


def learners(
    near: Array, most: Array, positive: float, negative: float, size: int, fraction: float, sample: Sample
) -> tuple[Array, Array, Array, Array]:
    """What anchors learn by their overlaps with the boxes of an image.

    Args:
        near: Overlaps [A, G].
        most: The greatest of each anchor.
        positive: Overlap from which on an anchor is positive.
        negative: Overlap below which it is negative.
        size: How many learn; not positive: all.
        fraction: How many of these at most are positive.
        sample: Takes some of a list.

    Returns:
        Anchors that learn a box, 1 where theirs counts, positive anchors, negative anchors.
    """
    best = np.abs(near - near.max(axis=0, initial=0)) < _NEAR
    chosen = np.flatnonzero(best.any(axis=1) | (most >= positive)) if near.shape[1] else np.empty(0, np.int64)
    limited = size > 0 and fraction > 0
    if limited:
        chosen = sample(chosen, int(np.float32(fraction) * np.float32(size)))
    background = np.flatnonzero(most < negative)
    if limited:
        background = sample(background, size - len(chosen))
    # the best anchor of a box may overlap it by less than `negative`: it is background, and stays in the list of
    # those that learn a box as a repetition of the first one that does not count
    both = np.isin(chosen, background)
    kept = chosen[~both]
    location = np.concatenate([np.repeat(chosen[:1], both.sum()), kept])
    counts = np.concatenate([np.zeros(int(both.sum())), np.ones(len(kept))])
    return location, counts, kept, background
