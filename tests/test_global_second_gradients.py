"""Gradients of gradients of global tensors: the numbers of one rank, whatever the layouts, to the third order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import oprack
import pytest
from oprack import functional as F
from oprack import nn, optimizer, parallel
from oprack.errors import UnimplementedError
from oprack.testing.worlds import ThreadWorld

RNG = np.random.default_rng(0)
X = RNG.standard_normal((10, 8)).astype("float32")


def critic() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4), nn.Sigmoid(), nn.Linear(4, 1))


def loss_of(net: Any, x: oprack.Tensor) -> oprack.Tensor:
    """The gradient penalty of Gulrajani et al. 2017, and the slope of the penalty, so third derivatives count."""
    x.requires_grad = True
    y = net(x)
    (g,) = oprack.grad(y.sum(), [x], create_graph=True)
    penalty = ((g * g).sum(axis=1).sqrt() - 1.0).square().mean()
    (slope,) = oprack.grad(penalty, [x], create_graph=True)
    return y.mean() + 10.0 * penalty + (slope * slope).sum()


def trained(net: Any, x: Callable[[], oprack.Tensor]) -> list[Any]:
    adam, found = optimizer.Adam(0.01, parameter_list=net.parameters()), []
    for _ in range(2):
        loss = loss_of(net, x())
        loss.backward()
        found.append(loss.item())
        if len(found) == 1:
            found.append([p.grad.numpy() for p in net.parameters()])
        adam.step()
        adam.clear_grad()
    return found


@pytest.fixture(scope="module")
def start() -> dict[str, np.ndarray]:
    oprack.seed(3)
    return {name: value.numpy() for name, value in critic().state_dict().items()}


@pytest.fixture(scope="module")
def alone(start: dict[str, np.ndarray]) -> list[Any]:
    net = critic()
    net.set_state_dict(start)
    return trained(net, lambda: oprack.to_tensor(X))


MEGATRON = {"0.weight": ["B", "S(1)"], "0.bias": ["B", "S(0)"], "2.weight": ["B", "S(0)"]}


@pytest.mark.parametrize(
    ("grid", "layouts", "batch"),
    [
        ((4,), {}, "S(0)"),  # 10 rows on 4 ranks: means are weighted
        ((2, 2), MEGATRON, ["S(0)", "B"]),
        ((2,), {"4.bias": "B", "*": "S(0)"}, "S(0)"),
        ((2, 2), {}, ["S(0)", "S(0)"]),
    ],
    ids=["data-uneven", "data-tensor", "parameters", "data-nested"],
)
def test_a_gradient_penalty_trains_as_on_one_rank(
    grid: tuple[int, ...], layouts: dict[str, Any], batch: Any, start: dict[str, np.ndarray], alone: list[Any]
) -> None:
    def rank(world: parallel.Communicator) -> list[Any]:
        placement = parallel.placement(shape=grid)
        net = critic()
        net.set_state_dict(start)
        parallel.to_global(net, placement, layouts)
        return trained(net, lambda: oprack.to_tensor(X).to_global(placement, batch, from_whole=True))

    for first, gradients, *others in ThreadWorld(int(np.prod(grid))).run(rank):
        np.testing.assert_allclose([first, *others], [alone[0], *alone[2:]], rtol=2e-5)
        for got, wanted in zip(gradients, alone[1], strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-6)


W = oprack.to_tensor(RNG.standard_normal((4, 6)).astype("float32"))
FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "products": lambda x, w: F.matmul(x, w),
    "powers": lambda x, w: x * x * x,
    "sums": lambda x, w: x.sum(axis=1) * x.mean(axis=0).sum(),
    "transposed": lambda x, w: F.matmul(w, x, transpose_X=True, transpose_Y=True),
    "joined": lambda x, w: F.concat([x * 2.0, x * x], axis=0),
    "sliced": lambda x, w: x[1:, :3] * x[:-1, 1:],
    "slopes of slopes": lambda x, w: F.sigmoid(x) * w[:, :4].sum(),
    "reshaped": lambda x, w: x.reshape([2, 12]).square(),
    "broadcast": lambda x, w: x * x[0] + x / (x * x + 1.0),
}


LAYOUTS = ("S(0)", "S(1)", "P")


def slopes(f: Callable[[Any, Any], Any], x: Any, w: Any) -> list[Any]:
    """Gradients of the squared slope of f, in both arguments."""
    (g,) = oprack.grad(f(x, w).square().sum(), [x], create_graph=True)
    found = oprack.grad((g * g).mean(), [x, w], allow_unused=True)
    return [g.numpy(), *(None if s is None else s.numpy() for s in found)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_gradient_of_a_slope_is_that_of_one_rank(name: str) -> None:
    f = FUNCTIONS[name]
    value = RNG.standard_normal((6, 4)).astype("float32")
    x, w = oprack.to_tensor(value, requires_grad=True), oprack.to_tensor(W.numpy(), requires_grad=True)
    wanted = slopes(f, x, w)

    def rank(world: parallel.Communicator) -> list[list[Any]]:
        placement, found = parallel.placement(), []
        for sbps in LAYOUTS:
            x = oprack.to_tensor(value).to_global(placement, sbps, from_whole=True)
            w = oprack.to_tensor(W.numpy()).to_global(placement, "S(0)", from_whole=True)
            x.requires_grad = w.requires_grad = True
            found.append(slopes(f, x, w))
        return found

    for found in ThreadWorld(2).run(rank):
        for got in found:
            for a, b in zip(got, wanted, strict=True):
                assert (a is None) == (b is None)
                if a is not None:
                    np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-4)


def test_slopes_of_sequences_with_empty_ones() -> None:
    lod, value = [[0, 0, 3, 3, 5, 7, 7]], RNG.standard_normal((7, 3)).astype("float32")
    weight = RNG.standard_normal((3, 3)).astype("float32")

    def of(x: Any, w: Any) -> list[Any]:
        x.requires_grad = w.requires_grad = True
        h = F.tanh(F.matmul(x, w))
        (g,) = oprack.grad((h * h * h).sum(), [x], create_graph=True)
        found = oprack.grad((g * g).sum(), [x, w])
        return [g.numpy(), *(s.numpy() for s in found)]

    wanted = of(oprack.to_tensor(value, lod=lod), oprack.to_tensor(weight))

    def rank(world: parallel.Communicator) -> list[Any]:
        placement = parallel.placement()
        x = oprack.to_tensor(value, lod=lod).to_global(placement, "S(0)", from_whole=True)
        return of(x, oprack.to_tensor(weight).to_global(placement, "B", from_whole=True))

    for found in ThreadWorld(2).run(rank):
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_slopes_flow_to_what_each_rank_brought() -> None:
    def rank(world: parallel.Communicator) -> list[Any]:
        placement = parallel.placement()
        mine = oprack.to_tensor(X[world.rank * 5 : world.rank * 5 + 5], requires_grad=True)
        x = mine.to_global(placement, "S(0)")
        (g,) = oprack.grad((x * x * x).to_local().sum(), [mine], create_graph=True)
        (h,) = oprack.grad((g * g).sum(), [mine])
        return [g.numpy(), h.numpy()]

    for r, (g, h) in enumerate(ThreadWorld(2).run(rank)):
        part = X[r * 5 : r * 5 + 5]
        np.testing.assert_allclose(g, 3 * part**2, rtol=1e-5)
        np.testing.assert_allclose(h, 36 * part**3, rtol=1e-4, atol=1e-5)


def test_an_op_whose_ranks_talk_while_it_runs_is_refused() -> None:
    def rank(world: parallel.Communicator) -> None:
        table = oprack.to_tensor(X).to_global(parallel.placement(), "S(0)", from_whole=True)
        table.requires_grad = True
        ids = oprack.to_tensor(np.array([[1], [7]])).to_global(parallel.placement(), "B", from_whole=True)
        oprack.grad(F.lookup_table_v2(ids, table).square().sum(), [table], create_graph=True)

    with pytest.raises(UnimplementedError, match="computed on parts by op c_embedding"):
        ThreadWorld(2).run(rank)
