"""All paths of labels, and their scores."""

from __future__ import annotations

import itertools

import numpy as np

TAGS = 3


def path_score(emission: np.ndarray, transition: np.ndarray, path: tuple[int, ...]) -> float:
    if not path:
        return 0.0
    score = float(transition[0, path[0]] + transition[1, path[-1]] + emission[range(len(path)), path].sum())
    return score + float(sum(transition[2 + a, b] for a, b in itertools.pairwise(path)))


def all_paths(length: int) -> list[tuple[int, ...]]:
    return list(itertools.product(range(TAGS), repeat=length))
