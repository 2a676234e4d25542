"""Ops over rows against their definitions, one sequence after the other, with empty sequences at every place."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from oprack.tensor import LoDTensor, lod_from_lengths
from oprack.testing import OpCase

LENGTHS = {
    "first": [0, 3, 2],
    "middle": [3, 0, 2],
    "last": [3, 2, 0],
    "several": [0, 0, 2, 0, 4, 0],
    "only": [0, 0, 0],
    "no sequence": [],
}
rng = np.random.default_rng(7)


def random(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def ids(lengths: list[int], below: int = 5) -> LoDTensor:
    return sequences(rng.integers(0, below, (sum(lengths), 1)), lengths)


def sequences(rows: np.ndarray, lengths: list[int]) -> LoDTensor:
    return LoDTensor(rows, lod_from_lengths([lengths]))


def split(x: LoDTensor) -> list[np.ndarray]:
    (offsets,) = x.lod[-1:]
    return [x.array[a:b] for a, b in itertools.pairwise(offsets)]


def joined(parts: list[np.ndarray], like: np.ndarray) -> LoDTensor:
    """Sequences one after the other; `like` tells shape and dtype of a row when there is none."""
    rows = np.concatenate([like[:0], *parts]).astype(like.dtype)
    return LoDTensor(rows, lod_from_lengths([[len(p) for p in parts]]))


def pooled(kind: str, part: np.ndarray, pad: float) -> np.ndarray:
    if not len(part):
        return np.full(part.shape[1:], pad)
    return {
        "SUM": lambda: part.sum(0),
        "AVERAGE": lambda: part.sum(0) / len(part),
        "SQRT": lambda: part.sum(0) / np.sqrt(len(part)),
        "MAX": lambda: part.max(0),
        "FIRST": lambda: part[0],
        "LAST": lambda: part[-1],
    }[kind]()


def pool(n: list[int], kind: str) -> OpCase:
    x = sequences(random(sum(n), 4), n)
    out = np.array([pooled(kind, p, 0.5) for p in split(x)], np.float32).reshape(-1, 4)
    grads = ["X"] if kind == "MAX" else []  # the others leave MaxIndex unset; case files check their gradients
    return OpCase("sequence_pool", {"X": x}, {"pooltype": kind, "pad_value": 0.5}, {"Out": out}, grads)


def softmax(n: list[int]) -> OpCase:
    x = sequences(random(sum(n), 1), n)
    parts = [np.exp(p) / np.exp(p).sum() for p in split(x)]
    return OpCase("sequence_softmax", {"X": x}, outputs={"Out": joined(parts, x.array)}, grads=["X"])


def reverse(n: list[int]) -> OpCase:
    x = sequences(random(sum(n), 2, 3), n)
    parts = [p[::-1] for p in split(x)]
    return OpCase("sequence_reverse", {"X": x}, outputs={"Y": joined(parts, x.array)}, grads=["X"])


def expand_rows(n: list[int]) -> OpCase:
    x, y = random(len(n), 4), sequences(random(sum(n), 1), n)
    out = np.array([x[i] for i, k in enumerate(n) for _ in range(k)], np.float32).reshape(-1, 4)
    if not n:
        out = x
    return OpCase("sequence_expand", {"X": x, "Y": y}, {"ref_level": 0}, {"Out": out}, ["X"])


def expand_sequences(n: list[int]) -> OpCase:
    """Both what is repeated and how often may be nothing."""
    x, repeats = sequences(random(sum(n), 4), n), [2, 0, 1, 3, 1, 0][: len(n)]
    y = sequences(random(sum(repeats), 1), repeats)
    parts = [p for p, k in zip(split(x), repeats, strict=True) for _ in range(k)]
    out = joined(parts, x.array) if n else x
    return OpCase("sequence_expand", {"X": x, "Y": y}, {"ref_level": 0}, {"Out": out}, ["X"])


def expand_as(n: list[int]) -> OpCase:
    x, y = random(len(n), 4), sequences(random(sum(n), 1), n)
    parts = [np.repeat(x[i : i + 1], k, axis=0) for i, k in enumerate(n)]
    return OpCase("sequence_expand_as", {"X": x, "Y": y}, outputs={"Out": joined(parts, x)}, grads=["X"])


def concat(n: list[int]) -> OpCase:
    a, b = sequences(random(sum(n), 2), n), sequences(random(sum(n), 2), n[::-1])
    parts = [np.concatenate(pair) for pair in zip(split(a), split(b), strict=True)]
    return OpCase("sequence_concat", {"X": [a, b]}, outputs={"Out": joined(parts, a.array)}, grads=["X"])


def reshape(n: list[int]) -> OpCase:
    x = sequences(random(sum(n), 4), n)
    parts = [p.reshape(-1, 2) for p in split(x)]
    out = joined(parts, np.zeros((0, 2), np.float32))
    return OpCase("sequence_reshape", {"X": x}, {"new_dim": 2}, {"Out": out}, ["X"])


def pad(n: list[int], length: int) -> OpCase:
    x, value = sequences(random(sum(n), 3), n), random(3)
    width = max(n, default=0) if length < 0 else length
    out = np.tile(value, (len(n), width, 1))
    for i, part in enumerate(split(x)):
        out[i, : len(part)] = part
    outputs = {"Out": out, "Length": np.array(n, np.int64)}
    return OpCase("sequence_pad", {"X": x, "PadValue": value}, {"padded_length": length}, outputs, ["X"])


def unpad(n: list[int]) -> OpCase:
    x = random(len(n), 5, 3)
    out = joined([x[i, :k] for i, k in enumerate(n)], np.zeros((0, 3), np.float32))
    return OpCase("sequence_unpad", {"X": x, "Length": np.array(n, np.int64)}, outputs={"Out": out}, grads=["X"])


def mask(n: list[int]) -> OpCase:
    out = np.array([[j < k for j in range(4)] for k in n], bool).reshape(-1, 4)
    return OpCase("sequence_mask", {"X": np.array(n, np.int64)}, {"maxlen": 4, "out_dtype": 0}, {"Y": out})


def enumerate_(n: list[int]) -> OpCase:
    x = ids(n)
    parts = [np.array([[*p[i : i + 3, 0], -7, -7, -7][:3] for i in range(len(p))]).reshape(-1, 3) for p in split(x)]
    out = joined(parts, np.zeros((0, 3), np.int64))
    return OpCase("sequence_enumerate", {"X": x}, {"win_size": 3, "pad_value": -7}, {"Out": out})


def erase(n: list[int]) -> OpCase:
    x = ids(n)
    parts = [p[(p[:, 0] != 1) & (p[:, 0] != 3)] for p in split(x)]
    return OpCase("sequence_erase", {"X": x}, {"tokens": [1, 3]}, {"Out": joined(parts, x.array)})


def slice_(n: list[int]) -> OpCase:
    x = sequences(random(sum(n), 3), n)
    offset = np.array([min(1, k) for k in n], np.int64).reshape(-1, 1)
    length = np.array([max(k - 1, 0) for k in n], np.int64).reshape(-1, 1)
    out = joined([p[1:] for p in split(x)], x.array)
    return OpCase("sequence_slice", {"X": x, "Offset": offset, "Length": length}, outputs={"Out": out}, grads=["X"])


def scatter(n: list[int]) -> OpCase:
    x, places, updates = random(len(n), 4), ids(n, 4), sequences(random(sum(n), 1), n)
    out = x.copy()
    for i, (columns, values) in enumerate(zip(split(places), split(updates), strict=True)):
        for c, v in zip(columns[:, 0], values[:, 0], strict=True):
            out[i, c] += v
    inputs = {"X": x, "Ids": places, "Updates": updates}
    return OpCase("sequence_scatter", inputs, outputs={"Out": out}, grads=["X", "Updates"])


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


def row_conv(n: list[int]) -> OpCase:
    x, weights = sequences(random(sum(n), 3), n), random(3, 3)
    parts = [
        np.array([sum(p[t + k] * weights[k] for k in range(3) if t + k < len(p)) for t in range(len(p))]).reshape(-1, 3)
        for p in split(x)
    ]
    inputs = {"X": x, "Filter": weights}
    return OpCase("row_conv", inputs, outputs={"Out": joined(parts, x.array)}, grads=["X", "Filter"])


def lod_reset(n: list[int]) -> OpCase:
    x, offsets = random(sum(n), 2), lod_from_lengths([n])[0]
    return OpCase("lod_reset", {"X": x, "Y": np.array(offsets)}, outputs={"Out": LoDTensor(x, [offsets])}, grads=["X"])


def position_encoding(n: list[int]) -> OpCase:
    x = sequences(random(sum(n), 4), n)
    parts = []
    for p in split(x):
        t = np.arange(len(p))[:, None]
        angle = t / 10000.0 ** (np.arange(2) / 1)
        parts.append(0.5 * p + 2 * np.concatenate([np.sin(angle), np.cos(angle)], axis=1))
    attrs = {"alpha": 0.5, "beta": 2.0}
    return OpCase("add_position_encoding", {"X": x}, attrs, {"Out": joined(parts, x.array)}, ["X"])


def segments(n: list[int], kind: str) -> OpCase:
    """Segments without rows; those after the last row do not exist."""
    while n and not n[-1]:
        n = n[:-1]
    x = random(sum(n), 3)
    segment_ids = np.array([i for i, k in enumerate(n) for _ in range(k)], np.int64)
    reduce: Callable[..., Any] = {"SUM": np.sum, "MEAN": np.mean, "MAX": np.max, "MIN": np.min}[kind]
    rows = [reduce(p, axis=0) if len(p) else np.zeros(3) for p in (x[segment_ids == i] for i in range(len(n)))]
    out = np.array(rows, np.float32).reshape(-1, 3)
    return OpCase("segment_pool", {"X": x, "SegmentIds": segment_ids}, {"pooltype": kind}, {"Out": out}, ["X"])


CASES: dict[str, Callable[[list[int]], OpCase]] = {
    **{f"sequence_pool {k}": lambda n, k=k: pool(n, k) for k in ("SUM", "AVERAGE", "SQRT", "MAX", "FIRST", "LAST")},
    "sequence_softmax": softmax,
    "sequence_reverse": reverse,
    "sequence_expand rows": expand_rows,
    "sequence_expand sequences": expand_sequences,
    "sequence_expand_as": expand_as,
    "sequence_concat": concat,
    "sequence_reshape": reshape,
    "sequence_pad": lambda n: pad(n, -1),
    "sequence_pad to 6": lambda n: pad(n, 6),
    "sequence_unpad": unpad,
    "sequence_mask": mask,
    "sequence_enumerate": enumerate_,
    "sequence_erase": erase,
    "sequence_slice": slice_,
    "sequence_scatter": scatter,
    "sequence_conv": lambda n: conv(n, -1, 3, False),
    "sequence_conv far": lambda n: conv(n, 1, 2, False),
    "sequence_conv trainable": lambda n: conv(n, -2, 4, True),
    "row_conv": row_conv,
    "lod_reset": lod_reset,
    "add_position_encoding": position_encoding,
    **{f"segment_pool {k}": lambda n, k=k: segments(n, k) for k in ("SUM", "MEAN", "MAX", "MIN")},
}


@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
@pytest.mark.parametrize("name", CASES)
def test_empty_sequences(name: str, lengths: list[int]) -> None:
    case = CASES[name](lengths)
    reasons = case.check()
    assert not reasons, "\n".join(reasons)


def test_two_levels_pool_the_inner_one() -> None:
    x = LoDTensor(random(6, 4), lod_from_lengths([[2, 0, 1], [2, 0, 4]]))
    out = LoDTensor(np.stack([pooled("SUM", p, 0) for p in split(x)]).astype(np.float32), lod_from_lengths([[2, 0, 1]]))
    reasons = OpCase("sequence_pool", {"X": x}, {"pooltype": "SUM"}, {"Out": out}).check()
    assert not reasons, "\n".join(reasons)


@pytest.mark.parametrize("level", [0, 1, -1])
def test_expand_by_either_level(level: int) -> None:
    inner = [2, 0, 4]
    y = LoDTensor(random(6, 1), lod_from_lengths([[2, 0, 1], inner]))
    repeats = [2, 0, 1] if level == 0 else inner
    x = random(3, 2)
    out = np.repeat(x, repeats, axis=0)
    reasons = OpCase("sequence_expand", {"X": x, "Y": y}, {"ref_level": level}, {"Out": out}, ["X"]).check()
    assert not reasons, "\n".join(reasons)
