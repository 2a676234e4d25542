"""Cases of hash_embedding; rows are hashed with Python's integers, one id at a time."""

from __future__ import annotations

import numpy as np
from oprack import LoDTensor
from oprack.testing import OpCase

BITS = 2**64


def row(id_: int, number: int, rows: int) -> int:
    """SplitMix64's finalizer, as its authors give it, of id + number phi."""
    z = (id_ + number * 0x9E3779B97F4A7C15) % BITS
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % BITS
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % BITS
    return (z ^ (z >> 31)) % rows


def table(ids: np.ndarray, rows: int, hashes: int) -> np.ndarray:
    """[ids, rows]: how often each row is summed for each id."""
    counts = np.zeros((ids.size, rows))
    for i, id_ in enumerate(ids.reshape(-1).tolist()):
        for number in range(1, hashes + 1):
            counts[i, row(id_, number, rows)] += 1
    return counts


random = np.random.default_rng(0)
IDS = np.array([[0, 1, -1], [2**62, -(2**63), 7]])
W = random.normal(size=(5, 4))
COUNTS = {hashes: table(IDS, 5, hashes) for hashes in (1, 2, 3)}
CASES = [
    OpCase("hash_embedding", {"Ids": IDS, "W": W}, {"hashes": n}, {"Out": (c @ W).reshape(2, 3, 4)}, ["W"], name=f"{n}")
    for n, c in COUNTS.items()
]
small = np.array([3, 9], "int32")
CASES += [
    OpCase(
        "hash_embedding",
        {"Ids": LoDTensor(small, [[0, 0, 2]]), "W": W.astype("float32")},
        {"hashes": 2},
        {"Out": LoDTensor((table(small, 5, 2) @ W).astype("float32"), [[0, 0, 2]])},
        name="int32-float32-empty-sequence",
    ),
    OpCase("hash_embedding", {"Ids": IDS[:0], "W": W}, {"hashes": 2}, {"Out": np.zeros((0, 3, 4))}, name="empty"),
    OpCase(
        "hash_embedding_grad",
        {"Ids": IDS, "W": W, "Out@GRAD": np.arange(24.0).reshape(2, 3, 4)},
        {"hashes": 3},
        {"W@GRAD": COUNTS[3].T @ np.arange(24.0).reshape(6, 4)},
    ),
]
