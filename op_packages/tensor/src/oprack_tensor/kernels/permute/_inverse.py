"""The permutation that undoes another one."""

from __future__ import annotations

from collections.abc import Sequence


def inverse(axis: Sequence[int], rank: int) -> list[int]:
    axes = [a % rank for a in axis]
    return sorted(range(rank), key=axes.__getitem__)
