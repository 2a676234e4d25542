"""Cases of linear_chain_crf: against the sum over all paths."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.testing import OpCase

from .._rows import of_every_length, padded, random, rng, sequences, split
from ._paths import TAGS, all_paths, path_score


def crf(n: list[int], lengths_by: str) -> OpCase:
    emission, transition = sequences(random(sum(n), TAGS), n), random(TAGS + 2, TAGS)
    label = sequences(rng.integers(0, TAGS, (sum(n), 1)), n)
    losses = []
    for x, path in zip(split(emission), split(label), strict=True):
        scores = [path_score(x, transition, p) for p in all_paths(len(x))]
        losses.append(np.log(np.exp(scores).sum()) - path_score(x, transition, tuple(path[:, 0])))
    inputs: dict[str, Any] = {"Emission": emission, "Transition": transition, "Label": label}
    if lengths_by == "Length":
        inputs["Emission"] = padded(split(emission), 4, emission.array)
        inputs["Label"] = padded(split(label), 4, label.array)[..., 0]
        inputs["Length"] = np.array(n, np.int64).reshape(-1, 1)
    out = np.array(losses, np.float32).reshape(-1, 1)
    return OpCase(
        "linear_chain_crf", inputs, {}, {"LogLikelihood": out}, ["Emission", "Transition"], loss=["LogLikelihood"]
    )


CASES = [case for by in ("LoD", "Length") for case in of_every_length(crf, by)]
