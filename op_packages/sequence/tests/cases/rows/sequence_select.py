"""Cases of sequence_select."""

from __future__ import annotations

import numpy as np
from oprack.tensor import LoDTensor, lod_from_lengths
from oprack.testing import OpCase

from .._rows import joined, sequences, split

rng = np.random.default_rng(4)


def case(name: str, n: list[int], chosen: list[int], dtype: str = "int64") -> OpCase:
    x = sequences(rng.standard_normal((sum(n), 2)), n)
    parts = split(x)
    out, index = joined([parts[i] for i in chosen], x.array), np.array(chosen, dtype)
    return OpCase("sequence_select", {"X": x, "Index": index}, {}, {"Out": out}, ["X"] if out.array.size else [], name)


def _two_levels() -> OpCase:
    """Texts of sentences: the second, and the first twice."""
    x = LoDTensor(np.arange(6.0)[:, None], lod_from_lengths([[2, 1], [1, 2, 3]]))
    out = LoDTensor(np.float64([3, 4, 5, 0, 1, 2, 0, 1, 2])[:, None], lod_from_lengths([[1, 2, 2], [3, 1, 2, 1, 2]]))
    return OpCase(
        "sequence_select", {"X": x, "Index": np.int64([[1], [0], [0]])}, {}, {"Out": out}, ["X"], "two levels"
    )


def _gradient() -> OpCase:
    """A row has the sum over its copies."""
    x, g = sequences(np.zeros((3, 1)), [1, 2]), sequences(np.float64([1, 2, 4, 8, 16])[:, None], [2, 1, 2])
    inputs = {"X": x, "Index": np.int64([1, 0, 1]), "Out@GRAD": g}
    return OpCase("sequence_select_grad", inputs, {}, {"X@GRAD": sequences(np.float64([[4], [9], [18]]), [1, 2])})


CASES = [
    case("order", [2, 0, 3], [2, 0, 1]),
    case("copies", [2, 0, 3, 1], [3, 3, 1, 0, 3], "int32"),
    case("empty ones alone", [0, 2, 0], [2, 0]),
    case("none", [1, 2], []),
    _two_levels(),
    _gradient(),
]
