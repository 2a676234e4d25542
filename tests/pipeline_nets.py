"""A net in four stages, with a skip, a tied weight and several tensors between stages, and the same as a whole.

As a program of ranks it trains the pipeline and writes its losses: `oprack launch -n 2 pipeline_nets.py losses.json`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import oprack
from oprack import functional as F
from oprack import nn, optimizer, parallel

WORDS, WIDTH, STEPS = 10, 8, 3
RNG = np.random.default_rng(0)
IDS = RNG.integers(0, WORDS, (12, 5)).astype("int64")
LABELS = RNG.integers(0, WORDS, (12, 5, 1)).astype("int64")
LINEAR = [RNG.standard_normal((WIDTH, WIDTH)).astype("float32") * 0.4 for _ in range(2)]
TABLE = RNG.standard_normal((WORDS, WIDTH)).astype("float32") * 0.5


class First(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(WORDS, WIDTH)
        self.table.weight.copy_(TABLE)

    def forward(self, ids: Any) -> Any:
        h = self.table(ids)
        return {"h": h, "scale": 0.5, "residual": h * 2.0}


class Second(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)
        self.linear.weight.copy_(LINEAR[0])

    def forward(self, h: Any, scale: float) -> Any:
        y = F.tanh(self.linear(h)) * scale
        return y, y.detach() > 0.0, [y * y]


class Third(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)
        self.linear.weight.copy_(LINEAR[1])

    def forward(self, y: Any, positive: Any, more: Any, residual: Any) -> Any:
        return self.linear(F.where(positive, y, more[0])) + residual


class Fourth(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        # Other values than the first stage's, whose are taken.
        self.table = nn.Parameter(np.zeros((WORDS, WIDTH), "float32"))

    def forward(self, h: Any) -> Any:
        return F.matmul(h, self.table, transpose_Y=True)


class Whole(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third = First(), Second(), Third()

    def forward(self, ids: Any) -> Any:
        given = self.first(ids)
        h = self.third(*self.second(given["h"], given["scale"]), residual=given["residual"])
        return F.matmul(h, self.first.table.weight, transpose_Y=True)


def loss_of(scores: Any, labels: Any) -> Any:
    return F.softmax_with_cross_entropy(scores, labels).loss.mean()


def trained_whole() -> list[float]:
    net, found = Whole(), []
    adam = optimizer.Adam(0.05, parameter_list=net.parameters())
    for _ in range(STEPS):
        loss = loss_of(net(oprack.to_tensor(IDS)), oprack.to_tensor(LABELS))
        loss.backward()
        found.append(loss.item())
        adam.step()
        adam.clear_grad()
    return found


def pipeline(pieces: int, **changes: Any) -> parallel.Pipeline:
    given: dict[str, Any] = {"skips": {"residual": (0, 2)}, "tied": [{0: "table.weight", 3: "table"}]}
    return parallel.Pipeline([First, Second, Third, Fourth], pieces, **(given | changes))


def train(pipe: parallel.Pipeline) -> float:
    return pipe.train(oprack.to_tensor(IDS), oprack.to_tensor(LABELS), loss_of)


def trained_in_stages(pieces: int) -> tuple[list[float], int, float]:
    pipe = pipeline(pieces)
    adam = optimizer.Adam(0.05, parameter_list=pipe.parameters())
    before, found = pipe.evaluate(oprack.to_tensor(IDS), oprack.to_tensor(LABELS), loss_of), []
    for _ in range(STEPS):
        found.append(train(pipe))
        adam.step()
        adam.clear_grad()
    return found, pipe.in_flight, before


def trained_on_a_grid(grid: parallel.Placement, pieces: int) -> tuple[list[float], list[str]]:
    """Rows split over the axis "data" and the weights of the linear layers over "tensor", where the grid has them."""
    axes = [a for a in grid.axes if a != "pipeline"]

    def laid(tensor: str, data: str = "B") -> list[str]:
        return [tensor if a == "tensor" else data for a in axes]

    def stage(make: Any) -> Any:
        def made() -> Any:
            columns, rows = (
                {"linear.weight": laid("S(1)"), "linear.bias": laid("S(0)")},
                {"linear.weight": laid("S(0)")},
            )
            layouts = {Second: columns, Third: rows}.get(make, {})
            return parallel.to_global(make(), parallel.placement(), layouts)

        return made

    skips, tied = {"residual": (0, 2)}, [{0: "table.weight", 3: "table"}]
    stages = [stage(make) for make in (First, Second, Third, Fourth)]
    pipe = parallel.Pipeline(stages, pieces, placement=grid, skips=skips, tied=tied)
    adam = optimizer.Adam(0.05, parameter_list=pipe.parameters())
    ids, labels = (
        oprack.to_tensor(x).to_global(pipe.placement, laid("B", "S(0)"), from_whole=True) for x in (IDS, LABELS)
    )
    found = []
    for _ in range(STEPS):
        found.append(pipe.train(ids, labels, loss_of))
        adam.step()
        adam.clear_grad()
    return found, list(pipe.placement.axes)


LOD = [[0, 0, 3, 4, 4, 7, 9, 9, 9]]
ROWS = RNG.standard_normal((9, 4)).astype("float32")
CLASSES = RNG.integers(0, 3, (8, 1)).astype("int64")
WEIGHTS = [RNG.standard_normal((4, 4)).astype("float32"), RNG.standard_normal((4, 3)).astype("float32")]


class Rows(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(WEIGHTS[0])

    def forward(self, x: Any) -> Any:
        return F.tanh(F.mul(x, self.weight))


class Pooled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(WEIGHTS[1])

    def forward(self, x: Any) -> Any:
        return F.matmul(F.sequence_pool(x, pooltype="SUM"), self.weight)


def trained_on_sequences(world: Any) -> list[float]:
    """Sequences, the first, the last and one in the middle empty, on one rank or through a pipeline."""
    x, classes, found = oprack.to_tensor(ROWS, lod=LOD), oprack.to_tensor(CLASSES), []
    whole = nn.Sequential(Rows(), Pooled())
    pipe = None if world is None else parallel.Pipeline([Rows, Pooled], 4)
    adam = optimizer.Adam(0.05, parameter_list=whole.parameters() if pipe is None else pipe.parameters())
    for _ in range(STEPS):
        if pipe is not None:
            found.append(pipe.train(x, classes, loss_of))
        else:
            loss = loss_of(whole(x), classes)
            loss.backward()
            found.append(loss.item())
        adam.step()
        adam.clear_grad()
    return found


def main() -> None:
    ranks = parallel.init()
    losses, _, _ = trained_in_stages(3)
    if ranks.rank == 0:
        Path(sys.argv[1]).write_text(json.dumps({"ranks": ranks.size, "losses": losses}))


if __name__ == "__main__":
    main()
