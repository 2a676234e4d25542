"""Cases of sequence_unfold."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.tensor import LoDTensor, lod_from_lengths
from oprack.testing import OpCase

from .._rows import LENGTHS, joined, sequences, split

rng = np.random.default_rng(5)


def windows(part: np.ndarray, size: int, stride: int, dilation: int, padding: list[int]) -> np.ndarray:
    """Of one sequence, which is padded."""
    if not len(part):
        return np.zeros((0, size, *part.shape[1:]))
    around = [(padding[0], padding[1]), *[(0, 0)] * (part.ndim - 1)]
    padded, reach = np.pad(part, around), dilation * (size - 1) + 1
    found = [padded[t : t + reach : dilation] for t in range(0, len(padded) - reach + 1, stride)]
    return np.array(found).reshape(-1, size, *part.shape[1:])


def case(
    name: str, n: list[int], size: int, stride: int = 1, dilation: int = 1, padding: tuple[int, int] = (0, 0)
) -> OpCase:
    x = sequences(rng.standard_normal((sum(n), 2)), n)
    attrs: dict[str, Any] = {"size": size, "stride": stride, "dilation": dilation, "padding": list(padding)}
    out = joined([windows(p, **attrs) for p in split(x)], np.zeros((1, size, 2)))
    return OpCase("sequence_unfold", {"X": x}, attrs, {"Out": out}, ["X"] if out.array.size else [], name=name)


def _two_levels() -> OpCase:
    levels = [[2, 0, 1], [2, 0, 3]]
    x = LoDTensor(rng.standard_normal((5, 1)), lod_from_lengths(levels))
    out = np.concatenate([windows(p, 2, 1, 1, [0, 0]) for p in split(x)])
    expected = {"Out": LoDTensor(out, lod_from_lengths([[2, 0, 1], [1, 0, 2]]))}
    return OpCase("sequence_unfold", {"X": x}, {"size": 2}, expected, ["X"], name="two levels")


def _gradient() -> OpCase:
    """Each row is in as many windows as see it."""
    x, g = sequences(np.zeros((5, 1)), [2, 0, 3]), np.ones((5, 3, 1))
    inputs = {"X": x, "Out@GRAD": sequences(g, [2, 0, 3])}
    out = sequences(np.float64([[2], [2], [2], [3], [2]]), [2, 0, 3])
    return OpCase("sequence_unfold_grad", inputs, {"size": 3, "padding": [1, 1]}, {"X@GRAD": out})


CASES = [case(f"as long, {name}", n, 3, padding=(1, 1)) for name, n in LENGTHS.items()]
CASES += [
    case("shorter", [4, 0, 3, 1], 2),
    case("longer", [2, 0, 1], 2, padding=(2, 1)),
    case("steps of two", [5, 4, 0, 1], 2, stride=2, padding=(1, 0)),
    case("dilated", [6, 0, 3], 2, dilation=3, padding=(1, 1)),
    case("no window fits", [1, 0, 2], 4),
    case("one row", [2, 0, 1], 1),
    _two_levels(),
    _gradient(),
]
