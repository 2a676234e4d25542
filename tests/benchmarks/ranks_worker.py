"""A rank of bench_ranks.py: python ranks_worker.py ENGINE NET STEPS BATCH SIZES; the first rank prints JSON."""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

WARM_UP = 3
ROOT = Path(__file__).resolve().parents[2]


LAYERS, WIDTH, HEADS, LENGTH = 4, 256, 4, 64
"""Of the encoder."""


def data(net: str, rank: int, batch: int) -> tuple[np.ndarray, np.ndarray]:
    """Images, or vectors of sequences, and labels of a rank."""
    random = np.random.default_rng(rank)
    shape = (batch, 3, 32, 32) if net == "resnet18" else (batch, LENGTH, WIDTH)
    return random.standard_normal(shape, np.float32), random.integers(0, 10, (batch, 1))


def median_ms(step: Callable[[], Any], steps: int) -> float:
    """Median time of a step."""
    for _ in range(WARM_UP):
        step()
    times = []
    for _ in range(steps):
        begin = time.perf_counter()
        step()
        times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1e3


def latencies_us(reduce: Callable[[int], Callable[[], Any]], sizes: list[int]) -> list[float]:
    """Median time of an all_reduce of each size."""
    found = []
    for size in sizes:
        call = reduce(size)
        found.append(median_ms(call, 400 if size < 1 << 17 else 40) * 1e3)
    return found


def calls_us(calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """The least time of a call of each, of several hundred in a row."""
    for call in calls.values():
        call(), call()
    return {name: min(timeit.repeat(call, number=500, repeat=7)) / 500 * 1e6 for name, call in calls.items()}


def oprack(engine: str, kind: str, steps: int, batch: int, sizes: list[int]) -> dict[str, Any] | None:
    """oprack's eager step, by DataParallel or Zero."""
    sys.path.insert(0, str(ROOT / "examples"))
    import oprack
    from oprack import functional as F
    from oprack import nn, optimizer, parallel
    from train_on_ranks import resnet18

    class Encoder(nn.Module):
        """Scores of the mean over each sequence."""

        def __init__(self) -> None:
            super().__init__()
            layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, 0.0)
            self.encoder, self.scores = nn.TransformerEncoder(layer, LAYERS), nn.Linear(WIDTH, 10)

        def forward(self, x: Any) -> Any:
            return self.scores(self.encoder(x).mean(1))

    world = parallel.init()
    x, y = (oprack.to_tensor(v) for v in data(kind, world.rank, batch))
    net: Any = resnet18() if kind == "resnet18" else Encoder()
    momentum: Any = optimizer.Momentum(0.01, 0.9, parameters=net.parameters())
    if engine == "oprack zero":
        momentum = parallel.Zero(momentum, stage=2)
    elif world.size > 1 and engine != "oprack apart":
        net = parallel.DataParallel(net)
    world.barrier()

    def step() -> None:
        loss = F.softmax_with_cross_entropy(net(x), y).loss.mean()
        loss.backward()
        momentum.step()
        momentum.clear_grad()
        loss.numpy()

    found: dict[str, Any] = {"step_ms": median_ms(step, steps)}
    before = world.count
    step()
    found["collectives"] = world.count - before
    found["bytes"] = sum(p.size for p in net.parameters()) * 4

    def reduce(size: int) -> Callable[[], Any]:
        array = np.ones(size // 4, np.float32)
        return lambda: world.all_reduce(array, in_place=True)

    if world.size > 1 and engine == "oprack" and kind == "resnet18":
        found["all_reduce_us"] = latencies_us(reduce, sizes)
        a = oprack.to_tensor(np.ones((8, 8), np.float32))
        g = a.to_global(parallel.placement(), "split(0)")
        found["calls_us"] = calls_us(
            {
                "relu, local": lambda: F.relu(a),
                "relu": lambda: F.relu(g),
                "add": lambda: F.elementwise_add(g, g),
            }
        )
    return found if world.rank == 0 else None


def on_ranks(net: Any, engine: str, kind: str) -> Any:
    """A net of PyTorch in DistributedDataParallel, or with its parameters in parts, layer by layer."""
    from torch import distributed, nn
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    if engine == "torch":
        return nn.parallel.DistributedDataParallel(net)
    mesh = init_device_mesh("cpu", (distributed.get_world_size(),))
    for layer in list(net) if kind == "resnet18" else net.encoder.layers:
        if any(True for _ in layer.parameters()):
            fully_shard(layer, mesh=mesh)
    fully_shard(net, mesh=mesh)
    return net


def torch(engine: str, kind: str, steps: int, batch: int, sizes: list[int]) -> dict[str, Any] | None:
    """PyTorch's step, on two ranks by DistributedDataParallel or fully_shard (FSDP2)."""
    import torch
    from torch import distributed, nn
    from torch_models import resnet

    torch.set_num_threads(1)
    torch.manual_seed(0)
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    given, labels = data(kind, rank, batch)
    x, y = torch.from_numpy(given), torch.from_numpy(labels).reshape(-1)

    class Encoder(nn.Module):
        """Scores of the mean over each sequence."""

        def __init__(self) -> None:
            super().__init__()
            layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, dropout=0.0, batch_first=True)
            self.encoder, self.scores = nn.TransformerEncoder(layer, LAYERS), nn.Linear(WIDTH, 10)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.scores(self.encoder(x).mean(1))

    net: Any = resnet((2, 2, 2, 2), False, 10) if kind == "resnet18" else Encoder()
    if size > 1:
        distributed.init_process_group("gloo")
        net = on_ranks(net, engine, kind) if engine != "torch apart" else net
        distributed.barrier()
    momentum = torch.optim.SGD(net.parameters(), 0.01, momentum=0.9)

    def step() -> None:
        momentum.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        momentum.step()
        loss.item()

    found: dict[str, Any] = {"step_ms": median_ms(step, steps)}

    def reduce(size: int) -> Callable[[], Any]:
        array = torch.ones(size // 4)
        return lambda: distributed.all_reduce(array)

    if size > 1 and engine == "torch" and kind == "resnet18":
        found["all_reduce_us"] = latencies_us(reduce, sizes)
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor import DTensor, Shard

        a = torch.ones(8, 8)
        g = DTensor.from_local(a, init_device_mesh("cpu", (size,)), [Shard(0)])
        found["calls_us"] = calls_us(
            {
                "relu, local": lambda: torch.relu(a),
                "relu": lambda: torch.relu(g),
                "add": lambda: torch.add(g, g),
            }
        )
    if size > 1:
        distributed.destroy_process_group()
    return found if rank == 0 else None


if __name__ == "__main__":
    chosen, name, count, rows, bytes_ = sys.argv[1:]
    answer = (torch if chosen.startswith("torch") else oprack)(chosen, name, int(count), int(rows), json.loads(bytes_))
    if answer is not None:
        print(json.dumps(answer), flush=True)
