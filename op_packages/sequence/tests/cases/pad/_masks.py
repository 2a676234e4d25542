"""Padded rows, what is kept of them, and the rows alone: cases of unpad_by_mask and of pad_by_index."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from oprack.tensor import LoDTensor

from .._rows import joined, random

MASKS = {
    "prefix": [[1, 1, 1, 0], [1, 0, 0, 0], [1, 1, 1, 1]],
    "holes": [[0, 1, 0, 1], [1, 0, 0, 1], [0, 0, 1, 0]],
    "empty first": [[0, 0, 0, 0], [1, 1, 0, 0]],
    "empty middle": [[1, 1, 1, 0], [0, 0, 0, 0], [1, 0, 0, 0]],
    "empty last": [[1, 1, 1, 0], [0, 0, 0, 0]],
    "all padding": [[0, 0], [0, 0]],
    "no sequence": [],
}


class Padded(NamedTuple):
    """x [B, T, ...], which of it is kept, its rows, and their places."""

    name: str
    x: np.ndarray
    kept: np.ndarray
    rows: LoDTensor
    index: np.ndarray

    @classmethod
    def of(cls, name: str, inner: tuple[int, ...]) -> Padded:
        mask = MASKS[name]
        kept = np.array(mask, bool).reshape(len(mask), -1 if mask else 3)
        x = random(*kept.shape, *inner)
        rows = joined([x[b, m] for b, m in enumerate(kept)], np.zeros((0, *inner), np.float32))
        index = np.array([b * kept.shape[1] + t for b, t in zip(*np.nonzero(kept), strict=True)], np.int64)
        return cls(f"{name} {len(inner)}", x, kept, rows, index)

    @property
    def zeroed(self) -> np.ndarray:
        """x with zeros for what is not kept."""
        return np.where(self.kept.reshape(*self.kept.shape, *[1] * (self.x.ndim - 2)), self.x, 0)


ALL = [Padded.of(name, inner) for name in MASKS for inner in ((3,), (), (2, 2))]
