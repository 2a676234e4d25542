"""Cases of crf_decoding: the best of all paths."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.testing import OpCase

from .._rows import of_every_length, padded, random, rng, sequences, split
from ._paths import TAGS, all_paths, path_score


def best_path(n: list[int], lengths_by: str, with_label: bool) -> OpCase:
    emission, transition = sequences(random(sum(n), TAGS), n), random(TAGS + 2, TAGS)
    best = [max(all_paths(len(x)), key=lambda p, x=x: path_score(x, transition, p)) for x in split(emission)]
    path = np.array([t for p in best for t in p], np.int64).reshape(-1, 1)
    inputs: dict[str, Any] = {"Emission": emission, "Transition": transition}
    if with_label:
        inputs["Label"] = label = sequences(rng.integers(0, TAGS, (sum(n), 1)), n)
        path = (path == label.array).astype(np.int64)
    out: Any = sequences(path, n)
    if lengths_by == "Length":
        inputs["Emission"] = padded(split(emission), 4, emission.array)
        inputs["Length"] = np.array(n, np.int64)
        if with_label:
            inputs["Label"] = padded(split(label), 4, label.array)[..., 0]
        parts, out = split(out), np.zeros((len(n), 4), np.int64)
        for row, part in zip(out, parts, strict=True):
            row[: len(part)] = part[:, 0]
    return OpCase("crf_decoding", inputs, outputs={"ViterbiPath": out})


CASES = [c for by in ("LoD", "Length") for label in (False, True) for c in of_every_length(best_path, by, label)]
