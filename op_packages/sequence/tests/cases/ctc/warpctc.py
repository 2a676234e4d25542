"""Cases of warpctc: against the sum over all labellings of the frames."""

from __future__ import annotations

import itertools

import numpy as np
from oprack.testing import OpCase

from .._rows import random, sequences, split
from ._labels import labels_of


def loss(labels: list[int]) -> OpCase:
    frames, classes, blank = [3, 4, 2], 3, 2
    logits = sequences(random(sum(frames), classes), frames)
    tokens = sequences(np.array([0, 1, 0, 1, 0][: sum(labels)], np.int32).reshape(-1, 1), labels)
    losses = []
    for x, want in zip(split(logits), split(tokens), strict=True):
        p = np.exp(x) / np.exp(x).sum(1, keepdims=True)
        every = itertools.product(range(classes), repeat=len(x))
        total = sum(p[range(len(x)), f].prod() for f in every if labels_of(f, blank) == tuple(want[:, 0]))
        losses.append(-np.log(total))
    out = np.array(losses, np.float32).reshape(-1, 1)
    inputs, name = {"Logits": logits, "Label": tokens}, f"labels {labels}"
    return OpCase("warpctc", inputs, {"blank": blank}, {"Loss": out}, ["Logits"], name, rtol=1e-4, loss=["Loss"])


def without_frames(frames: list[int]) -> OpCase:
    """A sequence without frames costs nothing; others of one label: it stands somewhere among blanks."""
    logits = sequences(random(sum(frames), 4), frames)
    tokens = sequences(np.array([[1], [3], [2]], np.int32), [1, 1, 1])
    losses = []
    for x, token in zip(split(logits), (1, 3, 2), strict=True):
        p = np.exp(x) / np.exp(x).sum(1, keepdims=True)
        paths = itertools.product((0, token), repeat=len(x))
        total = sum(p[range(len(x)), f].prod() for f in paths if labels_of(f, 0) == (token,))
        losses.append(-np.log(total) if len(x) else 0.0)
    out = np.array(losses, np.float32).reshape(-1, 1)
    inputs, name = {"Logits": logits, "Label": tokens}, f"frames {frames}"
    return OpCase("warpctc", inputs, {"blank": 0}, {"Loss": out}, ["Logits"], name, rtol=1e-4, loss=["Loss"])


CASES = [
    *(loss(labels) for labels in ([1, 2, 0], [0, 1, 2], [2, 0, 1], [0, 0, 0])),
    *(without_frames(frames) for frames in ([0, 3, 5], [3, 0, 5], [5, 3, 0], [0, 0, 0])),
]
