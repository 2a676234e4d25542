"""What nets do with sequences, forward and backward; empty ones come first, in the middle and last."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import oprack
import pytest
from oprack import functional as F
from oprack import nn, to_tensor

WIDTH = 4
BATCHES = {"first": [0, 3, 2], "middle": [3, 0, 2], "last": [3, 2, 0], "several": [0, 1, 0, 4, 2, 0]}
Parts = list[np.ndarray]


def offsets_of(lengths: list[int]) -> list[int]:
    return np.cumsum([0, *lengths]).tolist()


def softmax(x: np.ndarray, axis: int = 0) -> np.ndarray:
    e = np.exp(x)
    return e / e.sum(axis, keepdims=True)


def attention(x: np.ndarray) -> np.ndarray:
    return softmax(x @ x.T / WIDTH**0.5, 1) @ x


def variance(x: Any) -> Any:
    centred = x - F.sequence_expand_as(F.sequence_pool(x, pooltype="AVERAGE"), x)
    return F.sequence_pool(centred * centred, pooltype="AVERAGE")


def convolved(x: np.ndarray) -> np.ndarray:
    padded = np.pad(x, [(1, 1), (0, 0)])
    return np.array([np.einsum("kc,fck->f", padded[t : t + 3], FILTERS) for t in range(len(x))]).reshape(-1, 3)


def gru(x: np.ndarray) -> np.ndarray:
    """cuDNN's, one step after the other."""
    w, u, b, c = (getattr(GRU, f"{n}_l0").numpy() for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    h, found = np.zeros(3), []
    for row in x:
        (r, z, n), (rh, zh, nh) = np.split(w @ row + b, 3), np.split(u @ h + c, 3)
        r, z = 1 / (1 + np.exp(-r - rh)), 1 / (1 + np.exp(-z - zh))
        h = (1 - z) * np.tanh(n + r * nh) + z * h
        found.append(h)
    return np.array(found).reshape(-1, 3)


rng = np.random.default_rng(11)
FILTERS, SHIFT = rng.standard_normal((3, WIDTH, 3)), rng.standard_normal(WIDTH)
oprack.seed(5)
GRU = nn.GRU(WIDTH, 3).to(dtype="float64")


def pooled(how: str) -> Callable[[Any], Any]:
    return lambda x: F.sequence_pool(x, pooltype=how)


def of_filled(reduce: Callable[[np.ndarray], Any]) -> Callable[[np.ndarray], np.ndarray]:
    """A row for each sequence, of zeros for an empty one."""
    return lambda x: (reduce(x) if len(x) else np.zeros(WIDTH))[None]


def two_first_rows(x: Any) -> Any:
    lengths = np.diff(x.lod[-1])
    first, most = np.zeros((len(lengths), 1), np.int64), np.minimum(lengths, 2)[:, None]
    return F.sequence_slice(x, to_tensor(first), to_tensor(most))


# What is done, and the same to the rows of one sequence
OPERATIONS: dict[str, tuple[Callable[[Any], Any], Callable[[np.ndarray], np.ndarray]]] = {
    "attention": (
        lambda x: F.sequence_attention(*[x.reshape([0, 1, WIDTH])] * 3).reshape([0, WIDTH]),
        attention,
    ),
    "softmax": (F.sequence_softmax, softmax),
    "amax": (pooled("MAX"), of_filled(lambda x: x.max(0))),
    "broadcasting": (
        lambda x: x * to_tensor(SHIFT) + F.sequence_expand_as(F.sequence_pool(x, pooltype="SUM"), x),
        lambda x: x * SHIFT + x.sum(0),
    ),
    "first row": (pooled("FIRST"), of_filled(lambda x: x[0])),
    "first rows": (two_first_rows, lambda x: x[:2]),
    "mean": (pooled("AVERAGE"), of_filled(lambda x: x.mean(0))),
    "cumsum": (F.sequence_cumsum, lambda x: x.cumsum(0)),
    "var": (variance, of_filled(lambda x: x.var(0))),
    "conv1d": (lambda x: nn.functional.conv1d(x, to_tensor(FILTERS), padding=1), convolved),
    "reverse": (F.sequence_reverse, lambda x: x[::-1]),
    "gru": (lambda x: GRU(x)[0], gru),
    "mse_loss": (
        lambda x: nn.functional.mse_loss(x, x * to_tensor(SHIFT), reduction="none"),
        lambda x: (x - x * SHIFT) ** 2,
    ),
    "shift": (lambda x: F.sequence_shift(x, offset=1), lambda x: np.concatenate([x[:1] * 0, x[:-1]])),
}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("batch", BATCHES)
def test_each_sequence_stands_for_itself(name: str, batch: str) -> None:
    operation, alone = OPERATIONS[name]
    lengths = BATCHES[batch]
    rows, offsets = rng.standard_normal((sum(lengths), WIDTH)), offsets_of(lengths)
    x = to_tensor(rows, lod=[offsets])
    wanted = [alone(rows[a:b]) for a, b in pairwise(offsets)]
    found = operation(x)
    np.testing.assert_allclose(found.numpy(), np.concatenate(wanted), rtol=1e-9, atol=1e-12)
    if found.lod:
        assert found.lod == [offsets_of([len(part) for part in wanted])]
    assert oprack.gradcheck(operation, [x]) == []


def test_a_mean_of_all_elements_is_one_over_tokens_and_of_pooled_ones_over_sequences() -> None:
    x = to_tensor(np.float64([[1], [2], [6], [5]]), lod=[[0, 3, 3, 4]])
    loss = nn.functional.mse_loss(x, x * 0, reduction="none")
    assert loss.mean().item() == (1 + 4 + 36 + 25) / 4
    assert F.sequence_pool(loss, pooltype="AVERAGE").mean().item() == pytest.approx(((1 + 4 + 36) / 3 + 0 + 25) / 3)


TEXTS = [[0, 2, 2, 4], [0, 0, 3, 5, 5]]  # two sentences, none, two; of which the first and the last are empty


@pytest.mark.parametrize("name", [n for n in OPERATIONS if n != "first rows"])
def test_the_inner_of_two_levels_counts_and_the_outer_stays(name: str) -> None:
    operation, alone = OPERATIONS[name]
    rows = rng.standard_normal((5, WIDTH))
    x = to_tensor(rows, lod=TEXTS)
    found = operation(x)
    wanted = [alone(rows[a:b]) for a, b in pairwise(TEXTS[1])]
    np.testing.assert_allclose(found.numpy(), np.concatenate(wanted), rtol=1e-9, atol=1e-12)
    assert found.lod == (TEXTS if len(found.numpy()) == 5 else TEXTS[:1])
    assert oprack.gradcheck(operation, [x]) == []


def test_pooling_twice_gives_a_row_for_each_text() -> None:
    rows = rng.standard_normal((5, WIDTH))
    twice = lambda x: F.sequence_pool(F.sequence_pool(x, pooltype="SUM"), pooltype="MAX")  # noqa: E731
    sums = [rows[:0].sum(0), rows[:3].sum(0), rows[3:].sum(0), rows[:0].sum(0)]
    wanted = [np.max(sums[:2], 0), np.zeros(WIDTH), np.max(sums[2:], 0)]
    np.testing.assert_allclose(twice(to_tensor(rows, lod=TEXTS)).numpy(), wanted, rtol=1e-12)
    assert oprack.gradcheck(twice, [to_tensor(rows, lod=TEXTS)]) == []
