"""State of optimizers in files: the same steps, of which memory holds a few parameters' state at a time."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import oprack
import pytest
from oprack import functional as F
from oprack import nn, optimizer, parallel
from oprack.errors import InvalidArgumentError
from oprack.testing.worlds import ThreadWorld

WIDTH = 48  # 9 KiB of weights each, above what stays in memory
X = np.random.default_rng(0).standard_normal((4, WIDTH)).astype("float32")


@pytest.fixture(scope="module")
def start() -> dict[str, np.ndarray]:
    oprack.seed(2)
    return {name: t.numpy() for name, t in net().state_dict().items()}


def net() -> nn.Module:
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 100))


def steps(module: Any, opt: Any, count: int = 3) -> None:
    ids = oprack.to_tensor(np.array([[1], [7], [1], [30]]))
    for _ in range(count):
        rows = F.lookup_table(module[2].weight, ids, is_sparse=True)  # sparse, and dense as well
        (
            module[:2](oprack.to_tensor(X)).tanh().mean() + (rows * 0.1).sum() + module(oprack.to_tensor(X)).mean()
        ).backward()
        opt.step()
        opt.clear_grad()


MAKERS = [
    lambda p: optimizer.Adam(0.05, parameters=p, grad_clip=optimizer.ClipGradByGlobalNorm(0.1)),
    lambda p: optimizer.Momentum(0.05, 0.9, parameters=p, weight_decay=0.1, grad_clip=optimizer.ClipGradByNorm(0.2)),
    lambda p: optimizer.Lamb(0.05, parameters=p),
]


@pytest.mark.parametrize("make", MAKERS)
def test_the_steps_are_the_same(make, start, tmp_path):
    found = []
    for where in (None, tmp_path):
        module = net()
        module.set_state_dict(start)
        opt = make(module.named_parameters())
        steps(module, opt, 1)
        if where is not None:
            opt.updates.offload(where, group_mb=0.01)
        steps(module, opt, 2)
        state = opt.state_dict()
        again = make(module.named_parameters())
        if where is not None:
            again.updates.offload(where)
        again.set_state_dict(state)
        steps(module, again, 1)
        found.append({**module.state_dict(), **again.state_dict()})
    for key, value in found[0].items():
        np.testing.assert_allclose(np.asarray(found[1][key]), np.asarray(value), rtol=1e-5, atol=1e-7)
    assert not list(tmp_path.iterdir())  # files without names


def test_memory_is_that_of_a_group(start, tmp_path):
    def held(where: Path | None) -> int:
        module = nn.Sequential(*[nn.Linear(256, 256) for _ in range(6)])
        opt = optimizer.Adam(0.05, parameters=module.parameters())
        if where is not None:
            opt.updates.offload(where, group_mb=0.3)
        x = oprack.to_tensor(np.ones((2, 256), "float32"))
        tracemalloc.start()
        with oprack.reference():  # libraries of kernels keep memory for the next step
            for _ in range(2):
                module(x).mean().backward()
                opt.step()
                opt.clear_grad()
        found = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        return found

    whole = 6 * 256 * 256 * 4
    assert held(None) > 2 * whole  # two moments, and the new parameters
    assert held(tmp_path) < held(None) - 1.5 * whole


def test_parts_of_a_state(start, tmp_path):
    def rank(world: parallel.Communicator) -> list[dict[str, np.ndarray]]:
        found = []
        for offloaded in (False, True):
            module = net()
            module.set_state_dict(start)
            adam = parallel.Zero(MAKERS[0](module.named_parameters()), stage=2)
            if offloaded:
                adam.updates.offload(tmp_path)
            for _ in range(3):
                module(oprack.to_tensor(X)).tanh().mean().backward()
                adam.step()
                adam.clear_grad()
            found.append({k: np.asarray(v) for k, v in adam.state_dict().items()})
        return found

    for plain, offloaded in ThreadWorld(2).run(rank):
        for key, value in plain.items():
            np.testing.assert_allclose(offloaded[key], value, rtol=1e-6)


def test_what_can_not_be(tmp_path):
    adam = optimizer.Adam(0.1, parameters=net().parameters())
    with pytest.raises(NotADirectoryError, match="is no directory; make it first"):
        adam.updates.offload(tmp_path / "none")
    with pytest.raises(InvalidArgumentError, match="group_mb is 0"):
        adam.updates.offload(tmp_path, group_mb=0)
