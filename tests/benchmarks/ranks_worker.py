"""A rank of bench_ranks.py: python ranks_worker.py ENGINE NET BATCH PORT CONFIGURATION...; it runs what is asked for.

Requests come as lines by the port: the name of a configuration, of which it answers with the milliseconds of a step, or
"more" for the figures of an all_reduce and of calls, as JSON.
"""

from __future__ import annotations

import json
import socket
import statistics
import sys
import time
import timeit
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from bench_ranks import SIZES

WARM_UP = 3
Step = Callable[[], Any]
ROOT = Path(__file__).resolve().parents[2]


LAYERS, WIDTH, HEADS, LENGTH = 4, 256, 4, 64
"""Of the encoder."""


def data(net: str, rank: int, batch: int) -> tuple[np.ndarray, np.ndarray]:
    """Images, or vectors of sequences, and labels of a rank."""
    random = np.random.default_rng(rank)
    shape = (batch, 3, 32, 32) if net == "resnet18" else (batch, LENGTH, WIDTH)
    return random.standard_normal(shape, np.float32), random.integers(0, 10, (batch, 1))


def serve(port: int, rank: int, steps: dict[str, Step], more: Callable[[], dict[str, Any]]) -> None:
    """Run what the benchmark asks for until it asks no more."""
    with socket.create_connection(("127.0.0.1", port)) as connection, connection.makefile("rw") as file:
        print(rank, file=file, flush=True)
        for line in file:
            what = line.strip()
            begin = time.perf_counter()
            answer = more() if what == "more" else steps[what]()
            print(json.dumps(answer or (time.perf_counter() - begin) * 1e3), file=file, flush=True)


def median_us(call: Step, count: int) -> float:
    """Median time of a call."""
    for _ in range(WARM_UP):
        call()
    return statistics.median(timeit.repeat(call, number=1, repeat=count)) * 1e6


def latencies_us(reduce: Callable[[int], Step]) -> list[float]:
    """Median time of an all_reduce of each size."""
    return [median_us(reduce(size), 400 if size < 1 << 17 else 40) for size in SIZES]


def calls_us(calls: dict[str, Step]) -> dict[str, float]:
    """The least time of a call of each, of several hundred in a row."""
    for call in calls.values():
        call(), call()
    return {name: min(timeit.repeat(call, number=500, repeat=7)) / 500 * 1e6 for name, call in calls.items()}


def oprack(kind: str, batch: int, port: int, configurations: Sequence[str]) -> None:
    """oprack's eager steps, by DataParallel and Zero."""
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

    def made(configuration: str) -> Step:
        net: Any = resnet18() if kind == "resnet18" else Encoder()
        momentum: Any = optimizer.Momentum(0.01, 0.9, parameters=net.parameters())
        if configuration in ("oprack", "oprack zero 1"):
            net = parallel.DataParallel(net)
        if configuration.startswith("oprack zero"):
            momentum = parallel.Zero(momentum, stage=1 if configuration.endswith("1") else 2)

        def step() -> None:
            loss = F.softmax_with_cross_entropy(net(x), y).loss.mean()
            loss.backward()
            momentum.step()
            momentum.clear_grad()
            loss.numpy()

        return step

    def reduce(size: int) -> Step:
        array = np.ones(size // 4, np.float32)
        return lambda: world.all_reduce(array, in_place=True)

    def more() -> dict[str, Any]:
        a = oprack.to_tensor(np.ones((8, 8), np.float32))
        g = a.to_global(parallel.placement(), "split(0)")
        calls: dict[str, Step] = {
            "relu, local": lambda: F.relu(a),
            "relu": lambda: F.relu(g),
            "add": lambda: F.elementwise_add(g, g),
        }
        sent = sum(p.size for p in resnet18().parameters()) * 4
        return {"all_reduce_us": latencies_us(reduce), "calls_us": calls_us(calls), "bytes": sent}

    serve(port, world.rank, {c: made(c) for c in configurations}, more)
    world.barrier()


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


def torch(kind: str, batch: int, port: int, configurations: Sequence[str]) -> None:
    """PyTorch's steps, by DistributedDataParallel and fully_shard (FSDP2)."""
    import torch
    from torch import distributed, nn
    from torch_models import resnet

    torch.set_num_threads(1)
    torch.manual_seed(0)
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
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

    def made(configuration: str) -> Step:
        net: Any = resnet((2, 2, 2, 2), False, 10) if kind == "resnet18" else Encoder()
        if configuration != "torch apart":
            net = on_ranks(net, configuration, kind)
        momentum = torch.optim.SGD(net.parameters(), 0.01, momentum=0.9)

        def step() -> None:
            momentum.zero_grad()
            loss = nn.functional.cross_entropy(net(x), y)
            loss.backward()
            momentum.step()
            loss.item()

        return step

    def reduce(size: int) -> Step:
        array = torch.ones(size // 4)
        return lambda: distributed.all_reduce(array)

    def more() -> dict[str, Any]:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor import DTensor, Shard

        a = torch.ones(8, 8)
        g = DTensor.from_local(a, init_device_mesh("cpu", (distributed.get_world_size(),)), [Shard(0)])
        calls: dict[str, Step] = {
            "relu, local": lambda: torch.relu(a),
            "relu": lambda: torch.relu(g),
            "add": lambda: torch.add(g, g),
        }
        return {"all_reduce_us": latencies_us(reduce), "calls_us": calls_us(calls)}

    serve(port, rank, {c: made(c) for c in configurations}, more)
    distributed.destroy_process_group()


if __name__ == "__main__":
    name, net, rows, where, *chosen = sys.argv[1:]
    (torch if name == "torch" else oprack)(net, int(rows), int(where), chosen)
