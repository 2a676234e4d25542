"""CRF, CTC, alignment and beam search against their definitions, with empty sequences at every place."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from oprack.tensor import LoDTensor, LoDTensorArray, lod_from_lengths
from oprack.testing import OpCase
from oprack_sequence.kernels.beam_search.beam_search_decode import beam_search_decode
from oprack_sequence.kernels.crf.linear_chain_crf import linear_chain_crf, linear_chain_crf_grad
from oprack_sequence.kernels.ctc.warpctc import warpctc

LENGTHS = {
    "first": [0, 3, 2],
    "middle": [3, 0, 2],
    "last": [3, 2, 0],
    "several": [0, 0, 2, 0, 3, 0],
    "only": [0, 0, 0],
    "no sequence": [],
}
TAGS = 3
rng = np.random.default_rng(13)
lengths_of_every_kind = pytest.mark.parametrize("n", LENGTHS.values(), ids=LENGTHS)


def random(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def sequences(rows: np.ndarray, n: list[int]) -> LoDTensor:
    return LoDTensor(rows, lod_from_lengths([n]))


def split(rows: np.ndarray, n: list[int]) -> list[np.ndarray]:
    ends = np.cumsum([0, *n])
    return [rows[a:b] for a, b in itertools.pairwise(ends)]


def padded(parts: list[np.ndarray], width: int) -> np.ndarray:
    """[B, width, ...], with junk past the end of each part."""
    shape = parts[0].shape[1:] if parts else (TAGS,)
    out = np.full((len(parts), width, *shape), 1, parts[0].dtype if parts else np.float32)
    for row, part in zip(out, parts, strict=True):
        row[: len(part)] = part
    return out


def context(**lods: list[int]) -> Any:
    """What a kernel asks for, apart from arrays."""
    return SimpleNamespace(
        lod=lambda slot, i=0: lod_from_lengths([lods[slot]]), wants=lambda slot, i=0: True, op_type="test"
    )


def check(case: OpCase) -> None:
    reasons = case.check()
    assert not reasons, "\n".join(reasons)


def path_score(emission: np.ndarray, transition: np.ndarray, path: tuple[int, ...]) -> float:
    if not path:
        return 0.0
    score = float(transition[0, path[0]] + transition[1, path[-1]] + emission[range(len(path)), path].sum())
    return score + float(sum(transition[2 + a, b] for a, b in itertools.pairwise(path)))


def all_paths(length: int) -> list[tuple[int, ...]]:
    return list(itertools.product(range(TAGS), repeat=length))


@lengths_of_every_kind
@pytest.mark.parametrize("with_length", [False, True], ids=["LoD", "Length"])
def test_linear_chain_crf(n: list[int], with_length: bool) -> None:
    emission, transition, label = random(sum(n), TAGS), random(TAGS + 2, TAGS), rng.integers(0, TAGS, (sum(n), 1))
    losses = []
    for x, path in zip(split(emission, n), split(label, n), strict=True):
        scores = [path_score(x, transition, p) for p in all_paths(len(x))]
        losses.append(np.log(np.exp(scores).sum()) - path_score(x, transition, tuple(path[:, 0])))
    inputs: dict[str, Any] = {"Transition": transition}
    if with_length:
        inputs["Emission"] = padded(split(emission, n), 4)
        inputs["Label"] = padded(split(label[:, 0], n), 4) if n else np.zeros((0, 4), np.int64)
        inputs["Length"] = np.array(n, np.int64).reshape(-1, 1)
    else:
        inputs |= {"Emission": sequences(emission, n), "Label": sequences(label, n)}
    out = np.array(losses, np.float32).reshape(-1, 1)
    check(OpCase("linear_chain_crf", inputs, outputs={"LogLikelihood": out}))


@lengths_of_every_kind
def test_linear_chain_crf_gradient(n: list[int]) -> None:
    inputs = {"Emission": random(sum(n), TAGS).astype(float), "Transition": random(TAGS + 2, TAGS).astype(float)}
    label, cotangent = rng.integers(0, TAGS, (sum(n), 1)), random(len(n), 1).astype(float)
    common = {"ctx": context(Emission=n, Label=n), "xp": np}
    alpha, exps, transition_exps, _ = linear_chain_crf(**inputs, Label=label, **common)
    grads = linear_chain_crf_grad(label, alpha, exps, transition_exps, cotangent, **common)
    for (name, value), grad in zip(inputs.items(), grads, strict=True):
        direction = rng.standard_normal(value.shape)
        moved = [inputs | {name: value + s * direction} for s in (1e-5, -1e-5)]
        losses = [float((linear_chain_crf(**m, Label=label, **common)[3] * cotangent).sum()) for m in moved]
        assert float((grad * direction).sum()) == pytest.approx((losses[0] - losses[1]) / 2e-5, rel=1e-5, abs=1e-7)


@lengths_of_every_kind
@pytest.mark.parametrize("with_length", [False, True], ids=["LoD", "Length"])
@pytest.mark.parametrize("with_label", [False, True])
def test_crf_decoding(n: list[int], with_length: bool, with_label: bool) -> None:
    emission, transition, label = random(sum(n), TAGS), random(TAGS + 2, TAGS), rng.integers(0, TAGS, (sum(n), 1))
    best = [max(all_paths(len(x)), key=lambda p, x=x: path_score(x, transition, p)) for x in split(emission, n)]
    path = np.array([t for p in best for t in p], np.int64).reshape(-1, 1)
    if with_label:
        path = (path == label).astype(np.int64)
    inputs: dict[str, Any] = {"Transition": transition}
    if with_length:
        inputs["Emission"] = padded(split(emission, n), 4)
        inputs["Length"] = np.array(n, np.int64)
        out: Any = np.zeros((len(n), 4), np.int64)
        for row, part in zip(out, split(path[:, 0], n), strict=True):
            row[: len(part)] = part
        if with_label:
            inputs["Label"] = padded(split(label[:, 0], n), 4) if n else np.zeros((0, 4), np.int64)
    else:
        inputs["Emission"], out = sequences(emission, n), sequences(path, n)
        if with_label:
            inputs["Label"] = sequences(label, n)
    check(OpCase("crf_decoding", inputs, outputs={"ViterbiPath": out}))


@lengths_of_every_kind
@pytest.mark.parametrize("bounds", [False, True])
def test_viterbi_decode(n: list[int], bounds: bool) -> None:
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
    check(OpCase("viterbi_decode", inputs, {"include_bos_eos_tag": bounds}, outputs))


def labels_of(frames: tuple[int, ...], blank: int, merge: bool = True) -> tuple[int, ...]:
    kept = [f for i, f in enumerate(frames) if not (merge and i and f == frames[i - 1])]
    return tuple(f for f in kept if f != blank)


@pytest.mark.parametrize("labels", [[1, 2, 0], [0, 1, 2], [2, 0, 1], [0, 0, 0]])
def test_warpctc(labels: list[int]) -> None:
    """Against the sum over all labellings of the frames."""
    frames, classes, blank = [3, 4, 2], 3, 2
    logits = random(sum(frames), classes)
    tokens = np.array([0, 1, 0, 1, 0][: sum(labels)], np.int32).reshape(-1, 1)
    losses = []
    for x, want in zip(split(logits, frames), split(tokens[:, 0], labels), strict=True):
        p = np.exp(x) / np.exp(x).sum(1, keepdims=True)
        every = itertools.product(range(classes), repeat=len(x))
        total = sum(p[range(len(x)), f].prod() for f in every if labels_of(f, blank) == tuple(want))
        losses.append(-np.log(total))
    inputs = {"Logits": sequences(logits, frames), "Label": sequences(tokens, labels)}
    out = np.array(losses, np.float32).reshape(-1, 1)
    check(OpCase("warpctc", inputs, {"blank": blank}, {"Loss": out}, rtol=1e-4))


@pytest.mark.parametrize("frames", [[0, 3, 5], [3, 0, 5], [5, 3, 0], [0, 0, 0]])
def test_warpctc_gradient_with_empty_sequences(frames: list[int]) -> None:
    """A sequence without frames costs nothing."""
    labels, logits = [1, 1, 1], random(sum(frames), 4).astype(float)
    tokens, ctx = np.array([[1], [3], [2]], np.int32), context(Logits=frames, Label=labels)
    loss, grad = warpctc(logits, tokens, blank=0, ctx=ctx, xp=np)
    assert [bool(v) for v in loss[:, 0]] == [f > 0 for f in frames]
    rows = np.concatenate([grad[:f, i] for i, f in enumerate(frames)])
    direction = rng.standard_normal(logits.shape)
    moved = [float(warpctc(logits + s * direction, tokens, blank=0, ctx=ctx, xp=np)[0].sum()) for s in (1e-5, -1e-5)]
    assert float((rows * direction).sum()) == pytest.approx((moved[0] - moved[1]) / 2e-5, rel=1e-5, abs=1e-7)


@lengths_of_every_kind
@pytest.mark.parametrize("merge", [False, True])
def test_ctc_align(n: list[int], merge: bool) -> None:
    x = rng.integers(0, 3, (sum(n), 1))
    parts = [labels_of(tuple(p[:, 0]), 0, merge) for p in split(x, n)]
    rows = np.array([t for p in parts for t in p], np.int64).reshape(-1, 1)
    lod = lod_from_lengths([[len(p) for p in parts]])
    # Paddle's answer when nothing is left
    out = LoDTensor(rows if len(rows) else np.array([[-1]]), lod, check=False)
    attrs = {"blank": 0, "merge_repeated": merge}
    check(OpCase("ctc_align", {"Input": sequences(x, n)}, attrs, {"Output": out}))


@lengths_of_every_kind
def test_ctc_align_of_a_padded_batch(n: list[int]) -> None:
    x = rng.integers(0, 3, (len(n), 4))
    out, counts = np.full_like(x, -1), np.zeros((len(n), 1), np.int64)
    for i, length in enumerate(n):
        labels = labels_of(tuple(x[i, :length]), 0)
        out[i, : len(labels)], counts[i] = labels, len(labels)
    inputs = {"Input": x, "InputLength": np.array(n, np.int64).reshape(-1, 1)}
    attrs = {"blank": 0, "merge_repeated": True, "padding_value": -1}
    check(OpCase("ctc_align", inputs, attrs, {"Output": out, "OutputLength": counts}))


def edits(a: list[int], b: list[int]) -> int:
    if not a or not b:
        return len(a) + len(b)
    return min(edits(a[1:], b) + 1, edits(a, b[1:]) + 1, edits(a[1:], b[1:]) + (a[0] != b[0]))


@lengths_of_every_kind
@pytest.mark.parametrize("with_length", [False, True], ids=["LoD", "Length"])
def test_edit_distance(n: list[int], with_length: bool) -> None:
    m = n[::-1]
    hyps, refs = rng.integers(0, 3, (sum(n), 1)), rng.integers(0, 3, (sum(m), 1))
    pairs = [(a[:, 0].tolist(), b[:, 0].tolist()) for a, b in zip(split(hyps, n), split(refs, m), strict=True)]
    out = np.array([edits(a, b) for a, b in pairs], np.float32).reshape(-1, 1)
    if with_length:
        empty = np.zeros((0, 3), np.int64)
        inputs: dict[str, Any] = {
            "Hyps": padded(split(hyps[:, 0], n), 3) if n else empty,
            "Refs": padded(split(refs[:, 0], m), 4) if n else empty,
            "HypsLength": np.array(n, np.int64),
            "RefsLength": np.array(m, np.int64),
        }
    else:
        inputs = {"Hyps": sequences(hyps, n), "Refs": sequences(refs, m)}
    outputs = {"Out": out, "SequenceNum": np.array([len(n)], np.int64)}
    check(OpCase("edit_distance", inputs, {"normalized": False}, outputs))


def test_beam_search_keeps_ended_prefixes_and_drops_finished_sources() -> None:
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
    check(OpCase("beam_search", inputs, {"level": 0, "beam_size": 2, "end_id": 0}, outputs))


def test_beam_search_decode_follows_parents_and_lists_the_end_once() -> None:
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
    sentences, totals = beam_search_decode(ids, scores, end_id=0, ctx=SimpleNamespace(op_type="test"))
    assert sentences.array.tolist() == [4, 0, 4, 6, 7]
    assert totals.array.tolist() == [0, -2, 0, -1, -4]
    assert sentences.lod == totals.lod == lod_from_lengths([[2], [2, 3]])
