"""Rank tables: sequences ordered by length, longest first; and picking sequences out of a LoD."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from oprack.errors import InvalidLoDError
from oprack.kernel import Array, ArrayModule
from oprack.tensor import LoDTensor


@dataclass(frozen=True)
class LoDRankTable:
    """index, length: int64 [n], place among the sequences and length, longest first, equals in order.

    level: the LoD level that was ranked. coarse_lod: the levels above it.
    """

    index: np.ndarray
    length: np.ndarray
    level: int
    coarse_lod: list[list[int]]

    @classmethod
    def of(cls, tensor: LoDTensor, level: int) -> LoDRankTable:
        """Rank the sequences of a level. Raises InvalidLoDError when the tensor has no such level."""
        if not 0 <= level < len(tensor.lod):
            raise InvalidLoDError(
                f"op lod_rank_table: level is {level} but X has {len(tensor.lod)} LoD levels; feed it as a LoDTensor "
                "with sequences"
            )
        length = np.diff(np.asarray(tensor.lod[level], np.int64))
        index = np.argsort(-length, kind="stable")
        return cls(index, length[index], level, tensor.lod[:level])

    @property
    def steps(self) -> int:
        """Length of the longest sequence."""
        return int(self.length[0]) if len(self.length) else 0

    def active(self, step: int) -> int:
        """Number of sequences that are longer than `step`; they come first."""
        return int(np.searchsorted(-self.length, -step, side="left"))

    def offsets(self) -> np.ndarray:
        """Offsets of the sequences in their own order, int64 [n + 1]."""
        length = np.empty_like(self.length)
        length[self.index] = self.length
        return np.concatenate([[0], np.cumsum(length)])


def spans(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The integers of all ranges [start, start + length), one after the other."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + np.repeat(starts - (ends - lengths), lengths)


def take_units(
    array: Array, lod: Sequence[Sequence[int]], units: np.ndarray, xp: ArrayModule
) -> tuple[Any, list[list[int]]]:
    """Pick sequences of the top level of a LoD (rows when it has none), in the order given: their rows and LoD."""
    taken = []
    for level in lod:
        offsets = np.asarray(level, np.int64)
        lengths = offsets[units + 1] - offsets[units]
        taken.append([0, *np.cumsum(lengths).tolist()])
        units = spans(offsets[units], lengths)
    return array[xp.asarray(units)], taken


def join_lods(lods: Sequence[Sequence[Sequence[int]]]) -> list[list[int]]:
    """LoD of tensors joined along their rows, from theirs."""
    if not lods:
        return []
    joined = []
    for levels in zip(*lods, strict=True):
        lengths = np.concatenate([np.diff(np.asarray(level, np.int64)) for level in levels])
        joined.append([0, *np.cumsum(lengths).tolist()])
    return joined
