"""Cases of segment_pool."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from oprack.testing import OpCase

from .._rows import of_every_length, random


def segments(n: list[int], kind: str) -> OpCase:
    """Segments without rows; those after the last row do not exist."""
    while n and not n[-1]:
        n = n[:-1]
    x = random(sum(n), 3)
    segment_ids = np.array([i for i, k in enumerate(n) for _ in range(k)], np.int64)
    reduce: Callable[..., Any] = {"SUM": np.sum, "MEAN": np.mean, "MAX": np.max, "MIN": np.min}[kind]
    rows = [reduce(p, axis=0) if len(p) else np.zeros(3) for p in (x[segment_ids == i] for i in range(len(n)))]
    out = np.array(rows, np.float32).reshape(-1, 3)
    return OpCase("segment_pool", {"X": x, "SegmentIds": segment_ids}, {"pooltype": kind}, {"Out": out}, ["X"])


CASES = [case for kind in ("SUM", "MEAN", "MAX", "MIN") for case in of_every_length(segments, kind)]
