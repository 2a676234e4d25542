"""Kernel of searchsorted."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel


@kernel("searchsorted", place=("cpu", "cuda"))
def searchsorted(SortedSequence: Array, Values: Array, *, out_int32: bool, right: bool, xp: ArrayModule) -> Array:
    """Places in one sequence by bisection; in rows of their own by sorting rows and values together."""
    kind = xp.int32 if out_int32 else xp.int64
    if SortedSequence.ndim == 1:
        return xp.searchsorted(SortedSequence, Values, "right" if right else "left").astype(kind)
    # a stable sort keeps what comes first in front of its equals
    parts = [SortedSequence, Values] if right else [Values, SortedSequence]
    order = xp.argsort(xp.concatenate(parts, axis=-1), axis=-1, kind="stable")
    n, m = SortedSequence.shape[-1], Values.shape[-1]
    of_sequence = (order < n) if right else (order >= m)
    before = xp.cumsum(of_sequence, axis=-1)
    places = xp.argsort(order, axis=-1)  # where each element went
    mine = places[..., n:] if right else places[..., :m]
    return xp.take_along_axis(before, mine, axis=-1).astype(kind)
