"""Cases of sequence_cumsum."""

from __future__ import annotations

import numpy as np
from oprack.tensor import LoDTensor, lod_from_lengths
from oprack.testing import OpCase

from .._rows import joined, of_every_length, sequences, split

rng = np.random.default_rng(5)


def summed(part: np.ndarray, exclusive: bool, reverse: bool) -> np.ndarray:
    """One row after the other."""
    out, total = np.zeros_like(part), np.zeros_like(part[:1].sum(0))
    for t in range(len(part))[:: -1 if reverse else 1]:
        before, total = total, total + part[t]
        out[t] = before if exclusive else total
    return out


def case(n: list[int], exclusive: bool = False, reverse: bool = False) -> OpCase:
    x = sequences(rng.standard_normal((sum(n), 2)), n)
    out = joined([summed(p, exclusive, reverse) for p in split(x)], x.array)
    attrs = {"exclusive": exclusive, "reverse": reverse}
    return OpCase("sequence_cumsum", {"X": x}, attrs, {"Out": out}, ["X"] if sum(n) else [])


def _others() -> list[OpCase]:
    levels = lod_from_lengths([[2, 0, 1], [2, 0, 3]])
    whole = OpCase(
        "sequence_cumsum",
        {"X": LoDTensor(np.int64([1, 2, 3, 4, 5]), levels)},
        {},
        {"Out": LoDTensor(np.int64([1, 3, 3, 7, 12]), levels)},
        name="integers of two levels",
    )
    wide = LoDTensor(np.ones((70, 300)), [[0, 40, 40, 70]])
    out = np.concatenate([np.arange(1, 41.0), np.arange(1, 31.0)])[:, None] * np.ones(300)
    return [whole, OpCase("sequence_cumsum", {"X": wide}, {}, {"Out": LoDTensor(out, wide.lod)}, name="alone")]


CASES = [c for e in (False, True) for r in (False, True) for c in of_every_length(case, e, r)]
CASES += _others()
