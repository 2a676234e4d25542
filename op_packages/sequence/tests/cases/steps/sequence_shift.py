"""Cases of sequence_shift."""

from __future__ import annotations

import dataclasses

import numpy as np
from oprack.testing import OpCase

from .._rows import joined, of_every_length, sequences, split

rng = np.random.default_rng(5)


def shifted(part: np.ndarray, offset: int, fill: float) -> np.ndarray:
    out = np.full_like(part, fill)
    for t in range(len(part)):
        if 0 <= t - offset < len(part):
            out[t] = part[t - offset]
    return out


def case(n: list[int], offset: int = 1) -> OpCase:
    x = sequences(rng.standard_normal((sum(n), 2)), n)
    out = joined([shifted(p, offset, 0.5) for p in split(x)], x.array)
    attrs = {"offset": offset, "fill": 0.5}
    return OpCase("sequence_shift", {"X": x}, attrs, {"Out": out}, ["X"] if sum(n) else [])


def _ids() -> OpCase:
    x = sequences(np.int64([[3], [4], [5]]), [1, 2])
    out = sequences(np.int64([[-1], [-1], [4]]), [1, 2])
    return OpCase("sequence_shift", {"X": x}, {"fill": -1.0}, {"Out": out}, name="ids")


CASES = [c for offset in (1, -1, 0, 4) for c in of_every_length(case, offset)]
CASES += [_ids(), dataclasses.replace(case([2, 0, 3], -2), name="back by two")]
