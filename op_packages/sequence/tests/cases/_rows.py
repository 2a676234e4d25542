"""Sequences as rows, of lengths with empty ones at every place."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence

import numpy as np
from oprack.tensor import LoDTensor, lod_from_lengths
from oprack.testing import OpCase

LENGTHS = {
    "first": [0, 3, 2],
    "middle": [3, 0, 2],
    "last": [3, 2, 0],
    "several": [0, 0, 2, 0, 4, 0],
    "only": [0, 0, 0],
    "no sequence": [],
}
rng = np.random.default_rng(7)


def of_every_length(make: Callable[..., OpCase], *arguments: object) -> list[OpCase]:
    """make(lengths, *arguments) for all LENGTHS."""
    return [
        dataclasses.replace(make(n, *arguments), name=" ".join([place, *map(str, arguments)]))
        for place, n in LENGTHS.items()
    ]


def random(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def ids(lengths: Sequence[int], below: int = 5) -> LoDTensor:
    return sequences(rng.integers(0, below, (sum(lengths), 1)), lengths)


def sequences(rows: np.ndarray, lengths: Sequence[int]) -> LoDTensor:
    return LoDTensor(rows, lod_from_lengths([lengths]))


def split(x: LoDTensor) -> list[np.ndarray]:
    """The rows of each sequence."""
    (offsets,) = x.lod[-1:]
    return [x.array[a:b] for a, b in itertools.pairwise(offsets)]


def padded(parts: list[np.ndarray], width: int, empty: np.ndarray) -> np.ndarray:
    """[sequences, width, ...], with junk past the end of each; `empty` tells shape and dtype of a row without any."""
    like = parts[0] if parts else empty
    out = np.full((len(parts), width, *like.shape[1:]), 1, like.dtype)
    for row, part in zip(out, parts, strict=True):
        row[: len(part)] = part
    return out


def joined(parts: list[np.ndarray], like: np.ndarray) -> LoDTensor:
    """Sequences one after the other; `like` tells shape and dtype of a row when there is none."""
    rows = np.concatenate([like[:0], *parts]).astype(like.dtype)
    return LoDTensor(rows, lod_from_lengths([[len(p) for p in parts]]))
