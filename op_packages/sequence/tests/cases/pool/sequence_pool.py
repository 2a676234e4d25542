"""Cases of sequence_pool."""

from __future__ import annotations

import numpy as np
from oprack.tensor import LoDTensor, lod_from_lengths
from oprack.testing import OpCase

from .._rows import of_every_length, random, sequences, split


def pooled(kind: str, part: np.ndarray, pad: float) -> np.ndarray:
    if not len(part):
        return np.full(part.shape[1:], pad)
    return {
        "SUM": lambda: part.sum(0),
        "AVERAGE": lambda: part.sum(0) / len(part),
        "SQRT": lambda: part.sum(0) / np.sqrt(len(part)),
        "MAX": lambda: part.max(0),
        "FIRST": lambda: part[0],
        "LAST": lambda: part[-1],
    }[kind]()


def pool(n: list[int], kind: str) -> OpCase:
    x = sequences(random(sum(n), 4), n)
    out = np.array([pooled(kind, p, 0.5) for p in split(x)], np.float32).reshape(-1, 4)
    grads = ["X"] if kind == "MAX" else []  # the others leave MaxIndex unset; case files check their gradients
    return OpCase("sequence_pool", {"X": x}, {"pooltype": kind, "pad_value": 0.5}, {"Out": out}, grads)


def two_levels() -> OpCase:
    """The inner one is pooled."""
    x = LoDTensor(random(6, 4), lod_from_lengths([[2, 0, 1], [2, 0, 4]]))
    out = LoDTensor(np.stack([pooled("SUM", p, 0) for p in split(x)]).astype(np.float32), lod_from_lengths([[2, 0, 1]]))
    return OpCase("sequence_pool", {"X": x}, {"pooltype": "SUM"}, {"Out": out}, name="two levels")


KINDS = ("SUM", "AVERAGE", "SQRT", "MAX", "FIRST", "LAST")
CASES = [two_levels(), *(case for kind in KINDS for case in of_every_length(pool, kind))]
