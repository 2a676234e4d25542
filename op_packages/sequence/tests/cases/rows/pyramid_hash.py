"""Cases of pyramid_hash: what Paddle 2.6.2 answers for a table of 0, 1, 2 ..., which shows the places it read."""

from __future__ import annotations

import struct

import numpy as np
from oprack import LoDTensor
from oprack.testing import OpCase

SHARE = np.float32(0.5)
IDS = LoDTensor(np.array([[3], [5], [7], [1], [2], [9], [4], [4], [8]], np.int32), [[0, 5, 6, 6, 9]])
TABLE = np.arange(60, dtype=np.float32)[:, None]
# For each term, two ids before three before four before five, where its three pairs of numbers begin
FIRST = [
    (56, 9, 57), (11, 47, 33), (44, 49, 19), (13, 51, 15), (55, 47, 54),
    (33, 10, 22), (2, 42, 11), (19, 13, 6), (7, 33, 21), (6, 19, 13),
]  # fmt: skip
LAST = [(24, 23, 44), (7, 29, 17), (5, 17, 24)]
# A filter of 256 bits and three hashes, that holds (3, 5), (5, 7, 1), (4, 8) and (9). Its bytes stand in whatever dtype
FILTER = np.frombuffer(
    struct.pack("<QQQQ", 17070416, 256, 3, 4)
    + bytes.fromhex("4000800001480510800000100200600002000c41000000000008600400000408"),
    np.int32,
).reshape(-1, 1)
ATTRS = {
    "num_emb": 6, "space_len": 58, "pyramid_layer": 5, "rand_len": 2, "drop_out_percent": float(SHARE),
    "use_filter": False,
}  # fmt: skip


def rows(places: list[tuple[int, int, int]]) -> np.ndarray:
    """Embeddings made of pairs of numbers; one of zeros where there is no term."""
    if not places:
        return np.zeros((1, 6), np.float32)
    return SHARE * (np.array(places, np.float32)[:, :, None] + np.arange(2, dtype=np.float32)).reshape(-1, 6)


def hashed(name: str, kept: list[int], **attrs: object) -> OpCase:
    """With the terms `kept` of the 13."""
    first, last = (
        [places for i, places in enumerate(those, at) if i in kept] for those, at in ((FIRST, 0), (LAST, 10))
    )
    parts = [rows(first), rows([]), rows([]), rows(last)]
    drop = np.zeros((45, 1), np.int32)
    drop[kept] = 1
    outputs = {
        "Out": LoDTensor(np.concatenate(parts), [[0, *np.cumsum([len(p) for p in parts]).tolist()]]),
        "DropPos": drop,
        "X_Temp_Out": IDS.array.astype(np.float32),
    }
    inputs = {"X": IDS, "W": TABLE, "WhiteList": FILTER, "BlackList": FILTER}
    return OpCase("pyramid_hash", inputs, ATTRS | attrs, outputs, grads=["W"], loss=["Out"], name=name)


ALL, LISTED = list(range(13)), [0, 5, 11]
OTHERS = [i for i in ALL if i not in LISTED]
CASES = [
    hashed("all terms", ALL),
    hashed("those of a list", LISTED, use_filter=True, white_list_len=len(FILTER)),
    hashed("those of no list", OTHERS, use_filter=True, black_list_len=len(FILTER)),
]


def _gradient() -> OpCase:
    """The first term alone: each number that was read gets the gradients of where it went, half of each."""
    counts = np.zeros((60, 1), np.float32)
    for place in FIRST[0]:
        counts[place : place + 2] += SHARE
    inputs = {
        "X": LoDTensor(IDS.array[:2], [[0, 2]]),
        "W": TABLE,
        "DropPos": np.array([[1], [0], [0], [0]], np.int32),
        "X_Temp_Out": IDS.array[:2].astype(np.float32),
        "Out@GRAD": LoDTensor(np.ones((1, 6), np.float32), [[0, 1]]),
    }
    return OpCase("pyramid_hash_grad", inputs, ATTRS | {"pyramid_layer": 2}, {"W@GRAD": counts}, name="one term")


CASES.append(_gradient())
