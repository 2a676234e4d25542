"""Pipelines of 2 and 4 stages against the whole net on one rank: losses, parameters, and what is held meanwhile."""

from __future__ import annotations

from typing import Any

import numpy as np
import oprack
import pytest
from oprack import functional as F
from oprack import nn, optimizer, parallel
from oprack.errors import InvalidArgumentError
from oprack.testing.worlds import ThreadWorld

RNG = np.random.default_rng(0)
X = RNG.standard_normal((24, 6)).astype("float32")
LABELS = RNG.integers(0, 3, (24, 1)).astype("int64")
STEPS = 6


def net() -> nn.Sequential:
    oprack.seed(3)
    return nn.Sequential(
        nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3)
    )


WEIGHTS = net().state_dict()
CUTS = {2: (0, 4, 7), 4: (0, 2, 4, 6, 7), 1: (0, 7)}


def loss_of(scores: oprack.Tensor, labels: oprack.Tensor) -> oprack.Tensor:
    return F.softmax_with_cross_entropy(scores, labels).loss.mean()


@pytest.fixture(scope="module")
def alone() -> list[float]:
    whole, found = net(), []
    whole.set_state_dict(WEIGHTS)
    adam = optimizer.Adam(0.05, parameter_list=whole.parameters())
    for _ in range(STEPS):
        loss = loss_of(whole(oprack.to_tensor(X)), oprack.to_tensor(LABELS))
        loss.backward()
        found.append(loss.item())
        adam.step()
        adam.clear_grad()
    return found


class Wrong(nn.Module):
    def forward(self, x: Any) -> Any:
        return x, object()


def stage(k: int, stages: int) -> nn.Module:
    layers = [nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3)]
    first, last = CUTS[stages][k : k + 2]
    part = nn.Sequential(*layers[first:last])
    part.set_state_dict(
        {f"{i - first}.{kind}": WEIGHTS[f"{i}.{kind}"]
         for i in range(first, last) for kind in ("weight", "bias") if f"{i}.{kind}" in WEIGHTS}
    )  # fmt: skip
    return part


@pytest.mark.parametrize(
    ("stages", "pieces"), [(1, 3), (2, 1), (2, 4), (2, 12), (4, 1), (4, 2), (4, 8), (4, 24)], ids=str
)
def test_losses_are_those_of_one_rank(stages: int, pieces: int, alone: list[float]) -> None:
    def rank(world: parallel.Communicator) -> tuple[list[float], int]:
        pipe = parallel.Pipeline([lambda k=k: stage(k, stages) for k in range(stages)], pieces)
        adam = optimizer.Adam(0.05, parameter_list=pipe.module.parameters())
        found = []
        for _ in range(STEPS):
            found.append(pipe.train(oprack.to_tensor(X), oprack.to_tensor(LABELS), loss_of))
            adam.step()
            adam.clear_grad()
        return found, pipe.in_flight

    for r, (found, held) in enumerate(ThreadWorld(stages).run(rank)):
        np.testing.assert_allclose(found, alone, atol=1e-5)
        assert held == min(stages - r, pieces)  # and not the number of micro-batches


def test_stages_may_be_data_parallel(alone: list[float]) -> None:
    def rank(world: parallel.Communicator) -> list[float]:
        pipe = parallel.Pipeline([lambda k=k: parallel.DataParallel(stage(k, 2)) for k in range(2)], 3)
        assert pipe.ranks.size == 2
        mine = slice(pipe.ranks.rank * 12, pipe.ranks.rank * 12 + 12)
        adam = optimizer.Adam(0.05, parameter_list=pipe.module.parameters())
        found = []
        for _ in range(STEPS):
            loss = pipe.train(oprack.to_tensor(X[mine]), oprack.to_tensor(LABELS[mine]), loss_of)
            found.append(float(pipe.ranks.all_reduce(np.array([loss / 2]))[0]))
            adam.step()
            adam.clear_grad()
        return found

    for found in ThreadWorld(4).run(rank):
        np.testing.assert_allclose(found, alone, atol=1e-5)


@pytest.mark.parametrize(
    ("stages", "pieces", "make", "message"),
    [
        (3, 1, nn.ReLU, "3 stages and 1 micro-batches on 2 ranks; expected as many"),
        (2, 0, nn.ReLU, "at least one micro-batch"),
        (2, 5, nn.ReLU, r"24 rows of tensor float32\[24, 6\] make no 5 micro-batches; expected rows"),
        (2, 2, lambda: Wrong(), "stage 0 gives object; expected what the next one takes"),
    ],
)
def test_what_makes_no_pipeline_is_refused(stages: int, pieces: int, make: Any, message: str) -> None:
    def rank(world: parallel.Communicator) -> None:
        pipe = parallel.Pipeline([make] * stages, pieces)
        pipe.train(oprack.to_tensor(X), oprack.to_tensor(LABELS), loss_of)

    with pytest.raises(InvalidArgumentError, match=message):
        ThreadWorld(2).run(rank)
