"""Cases of edit_distance."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.testing import OpCase

from .._rows import of_every_length, padded, rng, sequences, split


def edits(a: list[int], b: list[int]) -> int:
    if not a or not b:
        return len(a) + len(b)
    return min(edits(a[1:], b) + 1, edits(a, b[1:]) + 1, edits(a[1:], b[1:]) + (a[0] != b[0]))


def distance(n: list[int], lengths_by: str) -> OpCase:
    m = n[::-1]
    hyps, refs = (sequences(rng.integers(0, 3, (sum(k), 1)), k) for k in (n, m))
    pairs = [(a[:, 0].tolist(), b[:, 0].tolist()) for a, b in zip(split(hyps), split(refs), strict=True)]
    out = np.array([edits(a, b) for a, b in pairs], np.float32).reshape(-1, 1)
    inputs: dict[str, Any] = {"Hyps": hyps, "Refs": refs}
    if lengths_by == "Length":
        inputs = {
            "Hyps": padded(split(hyps), 4, hyps.array)[..., 0],
            "Refs": padded(split(refs), 5, refs.array)[..., 0],
            "HypsLength": np.array(n, np.int64),
            "RefsLength": np.array(m, np.int64),
        }
    outputs = {"Out": out, "SequenceNum": np.array([len(n)], np.int64)}
    return OpCase("edit_distance", inputs, {"normalized": False}, outputs)


CASES = [case for by in ("LoD", "Length") for case in of_every_length(distance, by)]
