"""Times eager calls of small tensors, recorded and not, and their gradients: oprack, Paddle and PyTorch in turns.

    python tests/benchmarks/bench_eager.py [--rounds 5] [--engine oprack]

Microseconds per call on one thread, the least of all rounds, tensors of float32 [4, 8]. The peers live in .venv-peers,
which `make bench` makes. With --engine only that one runs, in this process, and prints its figures as JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
PEERS = ROOT / ".venv-peers" / "bin" / "python"
ENGINES = ("oprack", "paddle", "torch")
CHAIN = 100
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
Calls = dict[str, Callable[..., Any]]


def _oprack() -> tuple[Callable[..., Any], Calls]:
    import oprack
    from oprack import functional as F

    return lambda a, grad: oprack.to_tensor(a, requires_grad=grad), {
        "relu": F.relu,
        "tanh": F.tanh,
        "add": lambda x: F.elementwise_add(x, x),
        "x * 2": lambda x: x * 2.0,
        "matmul": F.matmul_v2,
        "softmax": lambda x: F.softmax(x, axis=-1),
        "reshape": lambda x: x.reshape([8, 4]),
        "sum": lambda x: x.sum(),
        "layer_norm": F.layer_norm,
    }


def _paddle() -> tuple[Callable[..., Any], Calls]:
    import paddle

    paddle.set_device("cpu")
    f = paddle.nn.functional
    return lambda a, grad: paddle.to_tensor(a, stop_gradient=not grad), {
        "relu": f.relu,
        "tanh": paddle.tanh,
        "add": lambda x: paddle.add(x, x),
        "x * 2": lambda x: x * 2.0,
        "matmul": paddle.matmul,
        "softmax": lambda x: f.softmax(x, -1),
        "reshape": lambda x: x.reshape([8, 4]),
        "sum": lambda x: x.sum(),
        "layer_norm": lambda x: f.layer_norm(x, [8]),
    }


def _torch() -> tuple[Callable[..., Any], Calls]:
    import torch

    torch.set_num_threads(1)
    f = torch.nn.functional
    return lambda a, grad: torch.tensor(a, requires_grad=grad), {
        "relu": torch.relu,
        "tanh": torch.tanh,
        "add": lambda x: torch.add(x, x),
        "x * 2": lambda x: x * 2.0,
        "matmul": torch.matmul,
        "softmax": lambda x: torch.softmax(x, -1),
        "reshape": lambda x: x.reshape(8, 4),
        "sum": lambda x: x.sum(),
        "layer_norm": lambda x: f.layer_norm(x, (8,)),
    }


def measure(engine: str) -> dict[str, float]:
    """Microseconds per call, by what is called."""
    tensor, calls = {"oprack": _oprack, "paddle": _paddle, "torch": _torch}[engine]()
    generator = np.random.default_rng(0)
    array, weight = (generator.standard_normal(s).astype(np.float32) for s in ((4, 8), (8, 8)))

    def time(call: Callable[[], Any], count: int) -> float:
        call(), call()
        return min(timeit.repeat(call, number=count, repeat=3)) / count * 1e6

    found = {}
    for grad in (False, True):
        x, w = tensor(array, grad), tensor(weight, grad)
        for name, call in calls.items():
            given = (x, w) if name == "matmul" else (x,)
            found[name + (", recorded" if grad else "")] = time(lambda call=call, given=given: call(*given), 5000)
    x, w, ones = tensor(array, True), tensor(weight, True), tensor(np.ones((4, 8), np.float32), False)
    tanh, relu, matmul, total = calls["tanh"], calls["relu"], calls["matmul"], calls["sum"]

    def chain() -> None:
        y = x
        for _ in range(CHAIN):
            y = tanh(y)
        y.backward(ones)

    found["tanh there and back, one of a chain"] = time(chain, 20) / CHAIN
    found["relu(x @ w).sum().backward()"] = time(lambda: total(relu(matmul(x, w))).backward(), 500)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--engine", choices=ENGINES)
    options = parser.parse_args()
    if options.engine:
        print(json.dumps(measure(options.engine)))
        return 0
    best: dict[str, dict[str, float]] = {}
    for _ in range(options.rounds):
        for engine in ENGINES:
            python = sys.executable if engine == "oprack" else str(PEERS)
            command = [python, __file__, "--engine", engine]
            done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | ONE_THREAD)
            for name, value in json.loads(done.stdout.splitlines()[-1]).items():
                row = best.setdefault(name, {})
                row[engine] = min(value, row.get(engine, value))
    print(f"{'microseconds':40s}" + "".join(f"{engine:>10s}" for engine in ENGINES))
    for name, row in best.items():
        print(f"{name:40s}" + "".join(f"{row[engine]:10.2f}" for engine in ENGINES))
    return 0


if __name__ == "__main__":
    sys.exit(main())
