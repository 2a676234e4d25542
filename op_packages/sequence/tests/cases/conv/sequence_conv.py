"""Cases of sequence_conv."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from .._rows import joined, of_every_length, random, sequences, split


def conv(n: list[int], start: int, length: int, trainable: bool) -> OpCase:
    x, weights = sequences(random(sum(n), 3), n), random(3 * length, 2)
    up, down = max(0, -start), max(0, start + length - 1)
    padding = random(up + down, 3) if trainable else np.zeros((up + down, 3), np.float32)
    parts = []
    for p in split(x):
        wide = np.concatenate([padding[:up], p, padding[up:]])
        windows = [wide[up + t + start : up + t + start + length].reshape(-1) for t in range(len(p))]
        parts.append(np.array(windows, np.float32).reshape(-1, 3 * length) @ weights)
    attrs = {"contextLength": length, "contextStart": start, "paddingTrainable": trainable}
    inputs = {"X": x, "Filter": weights} | ({"PaddingData": padding} if trainable else {})
    out = joined(parts, np.zeros((0, 2), np.float32))
    return OpCase("sequence_conv", inputs, attrs, {"Out": out}, list(inputs), rtol=1e-4)


CASES = [
    *of_every_length(conv, -1, 3, False),
    *of_every_length(conv, 1, 2, False),
    *of_every_length(conv, -2, 4, True),
]
