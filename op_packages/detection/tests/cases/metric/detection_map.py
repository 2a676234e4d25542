"""Cases of detection_map by hand: a right, a doubled and a missed box, a difficult one, and counts that go on."""

from __future__ import annotations

import numpy as np
from oprack import LoDTensor
from oprack.testing import OpCase

BOXES = LoDTensor(
    np.array([[1, 0, 0, 0, 0.5, 0.5], [1, 0, 0.5, 0.5, 1, 1], [2, 1, 0, 0, 0.4, 0.4]], np.float32), [[0, 2, 3]]
)
# A hit, the same box again, a miss; and in the second image the difficult box.
DETECTED = LoDTensor(
    np.array(
        [
            [1, 0.7, 0, 0, 0.5, 0.5],
            [1, 0.9, 0, 0, 0.5, 0.45],
            [1, 0.8, 0.6, 0, 0.9, 0.3],
            [2, 0.6, 0, 0, 0.4, 0.4],
        ],
        np.float32,
    ),
    [[0, 3, 4]],
)
INPUTS = {"DetectRes": DETECTED, "Label": BOXES}
CLASS_1 = [[0.9, 1], [0.8, 0], [0.7, 0]]


def counted(rows: list[list[float]], lod: list[int]) -> tuple[LoDTensor, LoDTensor]:
    """AccumTruePos and AccumFalsePos of scores with 1 where right."""
    right = np.array(rows, np.float32).reshape(-1, 2)
    wrong = right * [1, -1] + np.array([0, 1])
    return LoDTensor(right, [lod]), LoDTensor(wrong.astype(np.float32), [lod])


def case(
    name: str, attrs: dict, counts: list[int], rows: list, lod: list[int], value: float, **state: object
) -> OpCase:
    """One case of three classes."""
    true, false = counted(rows, lod)
    outputs = {
        "AccumPosCount": np.array(counts, np.int32)[:, None],
        "AccumTruePos": true,
        "AccumFalsePos": false,
        "MAP": np.array([value], np.float32),
    }
    return OpCase("detection_map", INPUTS | state, {"class_num": 3, **attrs}, outputs, name=name)


BEFORE = counted([[0.95, 0]], [0, 0, 1, 1])
STATE = {
    "HasState": np.ones(1, np.int32),
    "PosCount": np.array([[0], [2], [0]], np.int32),
    "TruePos": BEFORE[0],
    "FalsePos": BEFORE[1],
}
CASES = [
    # class 1: one of two boxes at precision 1; class 2: one of one
    case("all", {}, [0, 2, 1], [*CLASS_1, [0.6, 1]], [0, 0, 3, 4], (0.5 + 1) / 2),
    case("without difficult boxes", {"evaluate_difficult": False}, [0, 2, 0], CLASS_1, [0, 0, 3, 3], 0.5),
    # precision 1 at the recalls 0, 0.1, ... 0.5
    case("11 points", {"ap_type": "11point"}, [0, 2, 1], [*CLASS_1, [0.6, 1]], [0, 0, 3, 4], (6 / 11 + 1) / 2),
    # one of four boxes, as the second best of all
    case("state", {"background_label": 2}, [0, 4, 1], [[0.95, 0], *CLASS_1, [0.6, 1]], [0, 0, 4, 5], 0.125, **STATE),
]
