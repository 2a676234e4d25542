"""Cases of beam_search_decode."""

from __future__ import annotations

import numpy as np
from oprack.tensor import LoDTensor, LoDTensorArray, lod_from_lengths
from oprack.testing import OpCase


def end_listed_once() -> OpCase:
    """Two steps back from [7, 0]: 7 goes on from 6, and 0 (the end) from an end of the step before."""
    steps = [
        ([[1], [1]], [4], [0.0]),
        ([[1], [2]], [6, 0], [-1.0, -2.0]),
        ([[2], [1, 1]], [7, 0], [-4.0, -2.0]),
    ]
    ids, scores = (
        LoDTensorArray(LoDTensor(np.array(step[k]).reshape(-1, 1), lod_from_lengths(step[0])) for step in steps)
        for k in (1, 2)
    )
    lod = lod_from_lengths([[2], [2, 3]])
    outputs = {
        "SentenceIds": LoDTensor(np.array([4, 0, 4, 6, 7]), lod),
        "SentenceScores": LoDTensor(np.array([0.0, -2, 0, -1, -4]), lod),
    }
    inputs = {"Ids": ids, "Scores": scores}
    return OpCase("beam_search_decode", inputs, {"beam_size": 2, "end_id": 0}, outputs, name="end")


CASES = [end_listed_once()]
