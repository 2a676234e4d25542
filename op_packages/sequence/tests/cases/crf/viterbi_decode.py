"""Cases of viterbi_decode: the best of all paths."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._rows import of_every_length, random
from ._paths import TAGS, all_paths, path_score


def best_path(n: list[int], bounds: bool) -> OpCase:
    x, follow = random(len(n), 4, TAGS), random(TAGS, TAGS)
    ends = np.stack([follow[-1], follow[-2]]) if bounds else np.zeros((2, TAGS), np.float32)
    transition = np.concatenate([ends, follow])
    width = max(n, default=0)
    scores, paths = np.zeros(len(n), np.float32), np.zeros((len(n), width), np.int64)
    for i, length in enumerate(n):
        best = max(all_paths(length), key=lambda p, i=i: path_score(x[i], transition, p))
        scores[i], paths[i, :length] = path_score(x[i], transition, best), best
    inputs = {"Input": x, "Transition": follow, "Length": np.array(n, np.int64)}
    outputs = {"Scores": scores, "Path": paths}
    return OpCase("viterbi_decode", inputs, {"include_bos_eos_tag": bounds}, outputs)


CASES = [case for bounds in (False, True) for case in of_every_length(best_path, bounds)]
