"""Cases of beam_search."""

from __future__ import annotations

import numpy as np
from oprack.tensor import LoDTensor, lod_from_lengths
from oprack.testing import OpCase


def prefixes_that_end() -> OpCase:
    """Source 0: one prefix has ended. Source 1 has no prefix. Source 2: both have ended, so it is done."""
    lod = lod_from_lengths([[2, 0, 2], [1, 1, 1, 1]])
    inputs = {
        "pre_ids": LoDTensor(np.array([[0], [5], [0], [0]]), lod),
        "pre_scores": LoDTensor(np.array([[-1], [-2], [-1], [-3]], np.float32), lod),
        "ids": LoDTensor(np.array([[1, 2], [3, 4], [1, 2], [1, 2]]), lod),
        "scores": LoDTensor(np.array([[9, 9], [-1.5, -0.5], [9, 9], [9, 9]], np.float32), lod),
    }
    out = lod_from_lengths([[2, 0, 2], [1, 1, 0, 0]])
    outputs = {
        "selected_ids": LoDTensor(np.array([[0], [4]]), out),
        "selected_scores": LoDTensor(np.array([[-1], [-0.5]], np.float32), out),
        "parent_idx": np.array([0, 1], np.int32),
    }
    return OpCase("beam_search", inputs, {"level": 0, "beam_size": 2, "end_id": 0}, outputs, name="ends")


CASES = [prefixes_that_end()]
