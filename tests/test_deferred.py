"""Deferred parameters: the numbers of a net that was made at once, whole or in parts, and memory for the parts."""

from __future__ import annotations

import copy
import tracemalloc
from typing import Any

import numpy as np
import oprack
import pytest
from oprack import initializer, nn, optimizer, parallel
from oprack.errors import CollectiveError, InvalidArgumentError, PreconditionNotMetError
from oprack.layers import unique_name
from oprack.nn.parameter import DeferredParameter
from oprack.parallel.simulated import FakeWorld
from oprack.testing.worlds import ThreadWorld

INITIALIZERS = [
    initializer.Constant(0.5),
    initializer.Uniform(0.0, 1.0, seed=3),
    initializer.Normal(),
    initializer.TruncatedNormal(),
    initializer.Xavier(),
    initializer.MSRA(uniform=False),
    initializer.KaimingNormal(),
    initializer.Orthogonal(),
]


class Squares(initializer.Uniform):
    """A subclass with another op, which says nothing of its order."""

    def __call__(self, var: Any) -> None:
        initializer.NumpyArrayInitializer(np.arange(np.prod(var.shape), dtype="float32").reshape(var.shape) ** 2)(var)


class Net(nn.Module):
    def __init__(self, shape: tuple[int, ...] = (6, 5, 4)) -> None:
        super().__init__()
        made = [self.create_parameter(shape, default_initializer=how) for how in [*INITIALIZERS, Squares()]]
        self.weights = nn.ParameterList(made)


def both(seed: int = 7, make: Any = Net) -> tuple[nn.Module, nn.Module, list[np.ndarray]]:
    """A net made at once and a deferred one, and what is drawn after each."""
    after = []
    oprack.seed(seed)
    with unique_name.guard():
        whole = make()
    after.append(oprack.rand([3]).numpy())
    oprack.seed(seed)
    with unique_name.guard(), nn.deferred():
        later = make()
    after.append(oprack.rand([3]).numpy())
    return whole, later, after


def test_numbers_are_those_of_a_net_that_is_made_at_once(monkeypatch):
    monkeypatch.setattr("oprack.nn.parameter._CHUNK", 32)
    whole, later, after = both()
    np.testing.assert_array_equal(*after)
    twin = copy.deepcopy(later)
    rng = np.random.default_rng(0)
    for p, q in zip(whole.parameters(), later.parameters(), strict=True):
        assert isinstance(q, DeferredParameter)
        for _ in range(8):
            region = [tuple(map(int, np.sort(rng.integers(0, n + 1, 2)))) for n in p.shape]
            np.testing.assert_array_equal(q.draw.part(region), p.numpy()[tuple(slice(a, b) for a, b in region)])
    oprack.rand([3])  # what is drawn meanwhile changes nothing
    for net in (later.to("cpu"), twin.to("cpu")):
        for p, q in zip(whole.parameters(), net.parameters(), strict=True):
            np.testing.assert_array_equal(q.numpy(), p.numpy())
            assert type(q) is nn.Parameter and q.requires_grad and q.name == p.name


@pytest.mark.parametrize("ranks", [1, 3, 4])
def test_each_rank_draws_its_part_of_what_rank_0_would_draw(ranks, monkeypatch):
    monkeypatch.setattr("oprack.nn.parameter._CHUNK", 32)
    whole, later, _ = both()
    layouts = {f"weights.{k}": f"split({k % 3})" for k in range(len(whole.weights))}

    def rank(world: parallel.Communicator) -> list[np.ndarray]:
        net = copy.deepcopy(later)
        for p in net.parameters():  # as ranks have them that were seeded each by itself
            p.draw = copy.copy(p.draw)
            p.draw.state = p.draw.state | {"seed": 7 + world.rank}
        parallel.to_global(net, parallel.placement(), layouts)
        assert sum(p._value.size for p in net.parameters()) < 120 * 9 / ranks + 9 * 30
        return [p.numpy() for p in net.parameters()]

    for found in ThreadWorld(ranks).run(rank):
        for p, value in zip(whole.parameters(), found, strict=True):
            np.testing.assert_array_equal(value, p.numpy())


def test_memory_is_that_of_the_part_and_a_chunk(monkeypatch):
    chunk, size = 1 << 14, 1 << 21
    monkeypatch.setattr("oprack.nn.parameter._CHUNK", chunk)
    with nn.deferred():
        wide, tall = nn.Linear(size // 256, 256), nn.Linear(16, size // 16)
    for p, region in ((wide.weight, [(0, size // 256), (0, 64)]), (tall.weight, [(4, 8), (0, size // 16)])):
        p.draw.part([(0, 1), (0, 1)])  # imports
        tracemalloc.start()
        part = p.draw.part(region)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert part.nbytes == size  # a quarter of what float32 takes
        assert peak < part.nbytes + 80 * chunk


def test_a_net_of_many_bytes_can_be_made_and_simulated():
    with nn.deferred():
        net = nn.Sequential(nn.Linear(1 << 20, 1 << 20), nn.ReLU(), nn.Linear(1 << 20, 8))  # 4 TiB

    def step(_: parallel.Communicator) -> None:
        layouts = {"0.weight": "split(1)", "0.bias": "split(0)", "2.weight": "split(0)"}
        parallel.to_global(net, parallel.placement(), layouts)
        x = oprack.to_tensor(np.ones((2, 1 << 20), "float32"))
        net(x.to_global(parallel.placement(), "B", from_whole=True)).sum().backward()

    report = FakeWorld(64).run(step)
    assert 1 << 37 < report.peak < 1 << 38  # weight and gradient, each 64 GiB


def test_values_may_come_instead_of_draws():
    oprack.seed(1)
    whole = nn.Linear(3, 2)
    with nn.deferred():
        later = nn.Linear(3, 2)
    with pytest.raises(InvalidArgumentError, match=r"gets float32\[2, 2\]; expected shape \[3, 2\]"):
        later.weight.set_value(np.ones((2, 2), "float32"))
    later.set_state_dict(whole.state_dict())
    np.testing.assert_array_equal(later.weight.numpy(), whole.weight.numpy())
    adam = optimizer.Adam(0.1, parameters=later.parameters())
    later(oprack.to_tensor(np.ones((1, 3), "float32"))).sum().backward()
    adam.step()


def test_elements_that_are_not_there_are_not_read():
    with nn.deferred():
        net = nn.Linear(3, 2)
    with pytest.raises(PreconditionNotMetError, match=r'has no elements yet; make those of its net by net.to\("cpu"\)'):
        net.weight.numpy()
    with pytest.raises(InvalidArgumentError, match=r"move them with x.to\(place\)"):
        net(oprack.to_tensor(np.ones((1, 3), "float32")))
    assert "deferred" in repr(net.weight)


@pytest.mark.parametrize("owner", ["DataParallel", "Zero"])
def test_what_needs_whole_parameters_says_how_to_make_them(owner: str) -> None:
    def made(net: Any) -> Any:
        if owner == "DataParallel":
            return parallel.DataParallel(net)
        return parallel.Zero(optimizer.SGD(0.1, parameters=net.parameters()), stage=2)

    with nn.deferred():
        net = nn.Linear(3, 2)
    with pytest.raises(PreconditionNotMetError, match=rf'{owner}: .*deferred\(\).*net\.to\("cpu"\).*without {owner}'):
        made(net)
    made(net.to("cpu"))


def test_ranks_with_other_nets_are_told():
    def rank(world: parallel.Communicator) -> None:
        with nn.deferred():
            net = nn.Linear(3, 2 + world.rank)
        parallel.to_global(net, parallel.placement())

    with pytest.raises(CollectiveError, match="ranks 0 and 1 have different deferred parameters"):
        ThreadWorld(2).run(rank)
