"""Histograms of what a variable holds, and the scales that follow from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

BINS = 2048
GREATEST = 127
"""The integer that stands for the scale."""
# The part of all numbers that method "hist" does not cut off.
_COVERED = 0.99999
# Numbers of bins, from the smallest scale that is tried to the largest one.
_CANDIDATES = range(GREATEST + 1, BINS + 1, 16)


class Histogram:
    """Absolute values of floats, counted in equal bins from 0 on; the range doubles where it is too small."""

    def __init__(self) -> None:
        self.counts = np.zeros(BINS, np.int64)
        self.end = 0.0
        self.greatest = 0.0

    def add(self, x: np.ndarray) -> None:
        """Count what is finite in an array."""
        values = np.abs(x[np.isfinite(x)], dtype=np.float32)
        if not values.size:
            return
        top = float(values.max())
        self.greatest = max(self.greatest, top)
        if not top:
            self.counts[0] += values.size
            return
        if not self.end:
            self.end = top
        while top > self.end:
            # two bins become one, and the upper half is empty
            self.counts[: BINS // 2] = self.counts.reshape(-1, 2).sum(axis=1)
            self.counts[BINS // 2 :] = 0
            self.end *= 2
        self.counts += np.histogram(values, BINS, (0.0, self.end))[0]


def by_abs_max(seen: Histogram) -> float:
    """The greatest absolute value."""
    return seen.greatest


def by_histogram(seen: Histogram) -> float:
    """The end of the bin up to which all but one of 100,000 numbers lie."""
    total = np.cumsum(seen.counts)
    last = int(np.searchsorted(total, _COVERED * total[-1]))
    return min(seen.end * (last + 1) / BINS, seen.greatest)


def by_error(seen: Histogram) -> float:
    """The scale with the least mean square of the error, of rounding and of cutting off."""
    middles = (np.arange(BINS) + 0.5) * (seen.end / BINS)
    scales = seen.end * np.array(_CANDIDATES) / BINS
    steps = scales[:, None] / GREATEST
    restored = np.minimum(np.rint(middles / steps), GREATEST) * steps
    errors = ((restored - middles) ** 2 @ seen.counts.astype(np.float64)) / max(1, seen.counts.sum())
    # what lies inside of a bin is rounded as well, which the middles alone do not show
    errors += np.minimum(steps[:, 0], seen.end / BINS) ** 2 / 12
    return min(float(scales[int(np.argmin(errors))]), seen.greatest)


def by_divergence(seen: Histogram) -> float:
    """The scale whose integers are distributed most like the numbers, by Kullback and Leibler's divergence."""
    best, found = np.inf, seen.end
    for count in _CANDIDATES:
        kept = seen.counts[:count].astype(np.float64)
        present = kept > 0
        if not present.any():
            continue
        reference = kept.copy()
        reference[-1] += seen.counts[count:].sum()  # what is cut off
        # each integer stands for all bins that are rounded to it, as often for each of them that is not empty
        group = np.minimum((np.arange(count) * (GREATEST + 1)) // count, GREATEST)
        totals, sizes = np.bincount(group, kept), np.bincount(group, present)
        spread = np.where(present, (totals / np.maximum(sizes, 1))[group], 0.0)
        divergence = _divergence(reference, spread)
        if divergence < best:
            best, found = divergence, seen.end * count / BINS
    return min(found, seen.greatest)


def _divergence(p: np.ndarray, q: np.ndarray) -> float:
    """Of the distribution q from p, which are counts; infinite where q leaves out what p has."""
    here = p > 0
    if (q[here] <= 0).any():
        return float(np.inf)
    a, b = p[here] / p.sum(), q[here] / q.sum()
    return float((a * np.log(a / b)).sum())


METHODS: Mapping[str, Callable[[Histogram], float]] = {
    "abs_max": by_abs_max,
    "hist": by_histogram,
    "kl": by_divergence,
    "mse": by_error,
}
"""Names of methods, as Paddle and PaddleSlim have them."""
