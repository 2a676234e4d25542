"""Parameters that lie in parts are gathered ahead of the calls that read them, and let go of behind."""

from __future__ import annotations

import weakref
from collections import Counter
from typing import Any

import numpy as np
import oprack
import pytest
from oprack import nn, optimizer, parallel
from oprack.errors import PreconditionNotMetError
from oprack.testing.worlds import ThreadCommunicator, ThreadWorld

WIDTH, LAYERS, ROWS = 16, 8, 256
X = np.random.default_rng(0).standard_normal((ROWS, WIDTH)).astype("float32")


def deep() -> nn.Module:
    net = nn.Sequential(*[nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)])
    random = np.random.default_rng(1)  # not oprack.seed: ranks are threads
    for p in net.parameters():
        p.set_value(random.standard_normal(p.shape).astype("float32") / WIDTH**0.5)
    return net


def in_parts(world: parallel.Communicator) -> tuple[Any, Any]:
    grid = parallel.placement()
    net = parallel.to_global(deep(), grid, {"*.weight": "split(0)"})
    return net, oprack.to_tensor(X).to_global(grid, "split(0)", from_whole=True)


@pytest.mark.parametrize("axis", [0, 1])
def test_numbers_are_those_of_one_process(axis: int) -> None:
    def losses(net: Any, x: Any) -> list[float]:
        sgd, found = optimizer.Momentum(0.1, 0.9, parameters=net.parameters()), []
        for step in range(4):
            if step == 2:  # a pass that ends early, and one without gradients
                net[0](x)
                with oprack.no_grad():
                    net(x), net(x)
            loss = net(x).square().mean()
            loss.backward()
            sgd.step()
            sgd.clear_grad()
            found.append(loss.item())
        return found

    def rank(world: parallel.Communicator) -> list[float]:
        grid = parallel.placement()
        net = parallel.to_global(deep(), grid, {"*.weight": f"split({axis})"})
        return losses(net, oprack.to_tensor(X).to_global(grid, "split(0)", from_whole=True))

    alone = losses(deep(), oprack.to_tensor(X))
    for found in ThreadWorld(2).run(rank):
        np.testing.assert_allclose(found, alone, rtol=1e-5)


def test_few_parameters_are_whole_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now, most, gathered = Counter[int](), Counter[int](), Counter[int]()
    start = ThreadCommunicator.start_all_gather

    def counted(ranks: Any, whole: np.ndarray, counts: Any) -> Any:
        rank, nbytes = ranks.rank, whole.nbytes
        now[rank] += nbytes
        gathered[rank] += 1
        most[rank] = max(most[rank], now[rank])
        weakref.finalize(whole, now.subtract, {rank: nbytes})
        return start(ranks, whole, counts)

    monkeypatch.setattr(ThreadCommunicator, "start_all_gather", counted)

    def rank(world: parallel.Communicator) -> list[int]:
        net, x = in_parts(world)
        for _ in range(2):
            y = net(x)
            held = now[world.rank]  # between the passes
            y.mean().backward()
        return [held, now[world.rank]]

    layer = WIDTH * WIDTH * 4
    for held, left in ThreadWorld(2).run(rank):
        assert held <= layer  # the next one that is on its way
        assert left == 0
    # One in use and one on its way; that of the call before lives as long as Python's frame does.
    assert max(most.values()) <= 3 * layer < LAYERS * layer
    assert set(gathered.values()) == {2 * 2 * LAYERS}  # in each pass once forward and once back, and none in vain


def test_the_next_layer_travels_while_one_computes() -> None:
    def rank(world: parallel.Communicator) -> int:
        net, x = in_parts(world)
        net(x).mean().backward()
        with oprack.Profiler() as profiler:
            net(x).mean().backward()
        events = profiler.chrome_trace()["traceEvents"]
        ops = [e for e in events if e.get("cat") == "op" and e["name"] == "matmul_v2"]
        sent = [e for e in events if e.get("cat") == "collective" and e["name"].startswith("all_gather")]
        # It is started inside of one product, behind the wait for that one's own weight, and ends after it
        ends = [(o["ts"], o["ts"] + o["dur"]) for o in ops]
        return sum(any(a < s["ts"] < b < s["ts"] + s["dur"] for s in sent) for a, b in ends)

    assert ThreadWorld(2).run(rank) == [LAYERS] * 2  # behind the last one, what its gradient reads


def test_a_parameter_that_was_written_since_is_refused() -> None:
    def rank(world: parallel.Communicator) -> None:
        net, x = in_parts(world)
        y = net(x).mean()
        with oprack.no_grad():
            net[1].weight.scale_(2.0)
        with pytest.raises(PreconditionNotMetError, match=r"needs its input .* was changed in place since by scale"):
            y.backward()

    ThreadWorld(2).run(rank)
