"""Kernel of range."""

from __future__ import annotations

import math

from oprack.kernel import kernel


@kernel("range", place=("cpu", "cuda"))
def arange(Start, End, Step, *, xp):
    start, end, step = (t.reshape(-1)[0].item() for t in (Start, End, Step))
    return (start + xp.arange(math.ceil((end - start) / step)) * step).astype(Start.dtype)
