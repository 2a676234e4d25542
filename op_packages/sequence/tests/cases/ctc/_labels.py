"""What a path of frames says."""

from __future__ import annotations


def labels_of(frames: tuple[int, ...], blank: int, merge: bool = True) -> tuple[int, ...]:
    kept = [f for i, f in enumerate(frames) if not (merge and i and f == frames[i - 1])]
    return tuple(f for f in kept if f != blank)
