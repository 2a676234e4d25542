"""Cases of ctc_align."""

from __future__ import annotations

import numpy as np
from oprack.tensor import LoDTensor, lod_from_lengths
from oprack.testing import OpCase

from .._rows import of_every_length, rng, sequences, split
from ._labels import labels_of


def align(n: list[int], merge: bool) -> OpCase:
    x = sequences(rng.integers(0, 3, (sum(n), 1)), n)
    parts = [labels_of(tuple(p[:, 0]), 0, merge) for p in split(x)]
    rows = np.array([t for p in parts for t in p], np.int64).reshape(-1, 1)
    lod = lod_from_lengths([[len(p) for p in parts]])
    # Paddle's answer when nothing is left
    out = LoDTensor(rows if len(rows) else np.array([[-1]]), lod, check=False)
    return OpCase("ctc_align", {"Input": x}, {"blank": 0, "merge_repeated": merge}, {"Output": out})


def align_padded(n: list[int], form: str) -> OpCase:
    x = rng.integers(0, 3, (len(n), 4))
    out, counts = np.full_like(x, -1), np.zeros((len(n), 1), np.int64)
    for i, length in enumerate(n):
        labels = labels_of(tuple(x[i, :length]), 0)
        out[i, : len(labels)], counts[i] = labels, len(labels)
    inputs = {"Input": x, "InputLength": np.array(n, np.int64).reshape(-1, 1)}
    attrs = {"blank": 0, "merge_repeated": True, "padding_value": -1}
    return OpCase("ctc_align", inputs, attrs, {"Output": out, "OutputLength": counts})


CASES = [
    *of_every_length(align, False),
    *of_every_length(align, True),
    *of_every_length(align_padded, "padded"),
]
