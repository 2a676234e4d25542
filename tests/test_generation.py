"""oprack.sequences.generate: against all sequences of a chain, and each sequence of a batch against itself alone."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import oprack
import pytest
from oprack import functional as F
from oprack import nn, sequences
from oprack.errors import InvalidArgumentError

END = 3
CHAIN = np.random.default_rng(5).normal(size=(4, 4)) * 1.5
"""Scores of the class behind each class."""


def chain(last: oprack.Tensor, state: Any) -> tuple[oprack.Tensor, Any]:
    assert last.lod == [list(range(len(last) + 1))]
    return oprack.to_tensor(CHAIN[last.numpy()]), state


def probabilities() -> np.ndarray:
    return np.exp(CHAIN) / np.exp(CHAIN).sum(axis=1, keepdims=True)


def all_sequences(start: int, longest: int) -> dict[tuple[int, ...], float]:
    """Each sequence that ends, or is as long as may be, and the logarithm of its probability."""
    logs, found = np.log(probabilities()), {}
    for length in range(1, longest + 1):
        for said in product(range(4), repeat=length):
            if END not in said[:-1] and (said[-1] == END or length == longest):
                found[said] = sum(logs[a, b] for a, b in zip((start, *said), said, strict=False))
    return found


@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_enough_beams_find_the_likeliest_of_all_sequences(penalty: float) -> None:
    starts, longest = [0, 1, 2], 4
    made = sequences.generate(chain, None, starts, end=END, longest=longest, beams=81, length_penalty=penalty)
    for start, part, score in zip(starts, made.parts, made.scores, strict=True):
        every = all_sequences(start, longest)
        best = max(every, key=lambda said: every[said] / len(said) ** penalty)
        assert part.tolist() == [k for k in best if k != END]
        np.testing.assert_allclose(score, every[best])


def test_the_likeliest_class_of_each_step() -> None:
    made = sequences.generate(chain, None, [0, 1, 2], end=END, longest=6)
    for start, part, score in zip([0, 1, 2], made.parts, made.scores, strict=True):
        said, last, total = [], start, 0.0
        while len(said) < 6 and last != END:
            total += np.log(probabilities()[last].max())
            last = int(CHAIN[last].argmax())
            said += [last] * (last != END)
        assert part.dtype == np.int64 and part.tolist() == said
        np.testing.assert_allclose(score, total)


@pytest.mark.parametrize(
    ("options", "kept"),
    [({}, [0, 1, 2, 3]), ({"top_k": 2}, [1, 2]), ({"top_p": 0.6}, [1, 2]), ({"top_p": 1e-9}, [2]), ({"top_k": 1}, [2])],
)
def test_classes_are_drawn_as_often_as_probable(options: dict[str, Any], kept: list[int]) -> None:
    row = np.log([0.1, 0.3, 0.5, 0.1])
    oprack.seed(7)
    drawn = sequences.sampler(**options)(np.tile(row, (8000, 1)))
    wanted = np.where(np.isin(range(4), kept), np.exp(row), 0)
    np.testing.assert_allclose(np.bincount(drawn, minlength=4) / 8000, wanted / wanted.sum(), atol=0.02)
    oprack.seed(7)
    np.testing.assert_array_equal(drawn, sequences.sampler(**options)(np.tile(row, (8000, 1))))


def test_temperature_sharpens() -> None:
    oprack.seed(1)
    drawn = sequences.sampler(temperature=0.5)(np.tile(np.log([0.2, 0.8]), (8000, 1)))
    np.testing.assert_allclose(drawn.mean(), 0.64 / 0.68, atol=0.01)


class Speaker(nn.Module):
    """A small decoder over what it reads."""

    def __init__(self) -> None:
        super().__init__()
        self.classes = nn.Embedding(4, 8)
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16, 0.0), 1)
        self.out = nn.Linear(8, 4)

    def step(self, last: oprack.Tensor, state: Any) -> tuple[oprack.Tensor, Any]:
        memory, cache, bias = state["memory"], state["cache"], state["bias"]
        rows, cache = self.decoder(self.classes(last), memory, cache=cache, tgt_is_causal=True)
        return self.out(rows) + bias, {"memory": memory, "cache": cache, "bias": bias}


@pytest.mark.parametrize("beams", [1, 3])
def test_a_sequence_is_the_same_alone_and_among_others(beams: int) -> None:
    """With empty ones first, in the middle and last, of which all ends leave the batch."""
    oprack.seed(3)
    net, draws = Speaker(), np.random.default_rng(2)
    parts = [draws.normal(size=(n, 8)).astype("float32") for n in (0, 4, 2, 0, 5, 1, 0)]
    bias = draws.normal(size=(len(parts), 4)).astype("float32")

    def said(chosen: list[int]) -> sequences.Generated:
        memory = sequences.from_list([parts[i] for i in chosen])
        state = {
            "memory": memory,
            "cache": net.decoder.gen_cache(memory),
            "bias": oprack.to_tensor(bias[chosen]),  # a row for each
        }
        return sequences.generate(net.step, state, np.zeros(len(chosen)), end=END, longest=5, beams=beams)

    together = said(list(range(len(parts))))
    assert len({len(part) for part in together.parts}) > 1  # some end before others
    for i, (part, score) in enumerate(zip(*together, strict=True)):
        alone = said([i])
        assert alone.parts[0].tolist() == part.tolist()
        np.testing.assert_allclose(alone.scores, score, rtol=1e-5)


def test_no_sequences_are_generated_of_none() -> None:
    made = sequences.generate(chain, None, [], end=END, longest=3)
    assert made.parts == [] and made.scores.shape == (0,)


def test_parts_of_a_state() -> None:
    rows = oprack.to_tensor(np.arange(5.0), lod=[[0, 2, 2, 5]])
    state = [rows, {"each": oprack.to_tensor([7, 8, 9])}, "plain", nn.KeyValueCache()]
    found = sequences.selected(state, np.array([2, 0, 2]))
    assert found[0].lod == [[0, 3, 5, 8]] and found[0].numpy().tolist() == [2, 3, 4, 0, 1, 2, 3, 4]
    assert found[1]["each"].numpy().tolist() == [9, 7, 9] and found[2:] == ["plain", nn.KeyValueCache()]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"beams": 0}, "beams is 0"),
        ({"longest": -1}, "longest -1"),
        ({"beams": 2, "choice": sequences.sampler()}, "no choice but `likeliest`"),
        ({"end": 4}, r"step returned scores \[1, 4\]; .* more classes than end, which is 4"),
    ],
)
def test_wrong_arguments(options: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=text):
        sequences.generate(chain, None, [0], **{"end": END, "longest": 3} | options)


@pytest.mark.parametrize("options", [{"temperature": 0.0}, {"top_k": 0}, {"top_p": 0.0}, {"top_p": 1.1}])
def test_wrong_samplers(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError, match="expected a temperature above 0"):
        sequences.sampler(**options)


def test_a_step_gives_each_sequence_a_row() -> None:
    with pytest.raises(InvalidArgumentError, match=r"scores \[1, 4\]; expected a row for each of 2 sequences"):
        sequences.generate(lambda last, state: (F.zeros([1, 4]), state), None, [0, 1], end=END, longest=3)
