"""Kernel of range."""

from __future__ import annotations

import math

from oprack.kernel import Array, ArrayModule, kernel


@kernel("range", place=("cpu", "cuda"))
def arange(Start: Array, End: Array, Step: Array, *, xp: ArrayModule) -> Array:
    start, end, step = (t.reshape(-1)[0].item() for t in (Start, End, Step))
    return (start + xp.arange(math.ceil((end - start) / step)) * step).astype(Start.dtype)
