"""Trains a net that one process may not hold: made in parts, saved in parts, killed, and gone on with on fewer ranks.

    N=examples/train_larger_than_a_rank.py
    python $N --out out/whole                                       # one rank without a limit
    python $N --out out/one --memory 250                            # one rank with a limit: MemoryError
    oprack launch -n 4 $N --out out/parts --memory 130 --kill-at 7  # the last of four is killed by SIGKILL
    oprack launch -n 2 $N --out out/parts --memory 250              # two go on, with the losses of the first run

`--memory` lets the kernel refuse a process more data (RLIMIT_DATA, which `ulimit -d` sets) than so many MiB beyond what
Python and its libraries hold after a small net was trained. Parameters, gradients and Adam's state take 256 MiB here,
and the libraries of kernels keep about as much for the next step. The net is deferred, so no rank ever has all of it;
its weights are split over the ranks (tensor parallelism), and with them the state. `losses.json` in the folder has the
losses of all runs there. `--offload` lets one rank train with a limit of 250, its state in files on the disk.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # stacks of threads are data, too
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import oprack
from oprack import functional as F
from oprack import nn, optimizer, parallel

ROWS, CLASSES = 32, 10


class Block(nn.Module):
    """x + two products with a ReLU between them, behind a layer norm."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: oprack.Tensor) -> oprack.Tensor:
        return x + self.down(F.relu(self.up(self.norm(x))))


LAYOUTS = {"*.up.weight": "split(1)", "*.up.bias": "split(0)", "*.down.weight": "split(0)"}
"""Columns of the first product and rows of the second; what is small is whole on each rank."""


def trainer(width: int, blocks: int) -> tuple[nn.Module, optimizer.Optimizer, Callable[[int], float]]:
    """The net on the ranks that there are, its optimizer, and a function that takes a step and returns the loss."""
    grid = parallel.placement("cpu")
    with nn.deferred():
        net = nn.Sequential(*[Block(width) for _ in range(blocks)], nn.LayerNorm(width), nn.Linear(width, CLASSES))
    parallel.to_global(net, grid, LAYOUTS)
    adam = optimizer.Adam(2e-5, parameters=net.named_parameters())

    def step(number: int) -> float:
        random = np.random.default_rng(number)
        x, labels = random.standard_normal((ROWS, width)).astype("float32"), random.integers(0, CLASSES, (ROWS, 1))
        inputs = [oprack.to_tensor(a).to_global(grid, "broadcast", from_whole=True) for a in (x, labels)]
        loss = F.softmax_with_cross_entropy(net(inputs[0]), inputs[1]).loss.mean()
        loss.backward()
        adam.step()
        adam.clear_grad()
        return float(loss.numpy())

    return net, adam, step


def limit_memory(mebibytes: int) -> int:
    """Let the kernel refuse this process more data than so many MiB beyond what it has; returns what it has, in MiB."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    now = int(status["VmData"].split()[0]) // 1024
    if mebibytes:
        resource.setrlimit(resource.RLIMIT_DATA, ((now + mebibytes) << 20, resource.RLIM_INFINITY))
    return now


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--steps", type=int, default=10, help="of training (%(default)s)")
    parser.add_argument("--width", type=int, default=512, help="of the net (%(default)s)")
    parser.add_argument("--blocks", type=int, default=8, help="8 * width * width parameters each (%(default)s)")
    parser.add_argument("--memory", type=int, default=0, help="MiB that each process may take for data; 0: all")
    parser.add_argument("--save-every", type=int, default=3, metavar="STEPS", help="between checkpoints (%(default)s)")
    parser.add_argument("--offload", action="store_true", help="keep the state of Adam in files in --out")
    parser.add_argument("--asynchronous", action="store_true", help="save copies by a thread, while training goes on")
    parser.add_argument("--kill-at", type=int, default=-1, metavar="STEP", help="kill the last rank in this step")
    parser.add_argument("--seed", type=int, default=1, help="of the parameters (%(default)s)")
    parser.add_argument("--out", type=Path, required=True, help="the folder of checkpoints and losses")
    options = parser.parse_args(argv)
    world = parallel.init()
    options.out.mkdir(parents=True, exist_ok=True)

    net, adam, step = trainer(16, 1)  # a small one first, so that all libraries are there
    step(0)
    parallel.Checkpointer(options.out / "small").save(0, {"net": net, "adam": adam})
    held = limit_memory(options.memory)

    oprack.seed(options.seed)
    net, adam, step = trainer(options.width, options.blocks)
    if options.offload:
        adam.updates.offload(options.out, group_mb=8)
    checkpoints = parallel.Checkpointer(options.out / "checkpoints", 2, options.asynchronous)
    found = checkpoints.load({"net": net, "adam": adam})
    losses = found.extra["losses"] if found else []
    first = len(losses)
    for number in range(first, options.steps):
        if number == options.kill_at and world.rank == world.size - 1:
            os.kill(os.getpid(), signal.SIGKILL)
        losses.append(step(number))
        if (number + 1) % options.save_every == 0:
            checkpoints.save(number + 1, {"net": net, "adam": adam}, {"losses": losses})
    checkpoints.wait()
    if world.rank == 0:
        (options.out / "losses.json").write_text(json.dumps(losses))
        whole = 16 * sum(p.size for p in net.parameters()) >> 20
        part = 16 * sum(p.to_local().size for p in net.parameters()) >> 20
        print(
            f"{world.size} ranks, steps {first} to {options.steps}: parameters, gradients and state take {whole} MiB, "
            f"{part} of them on this rank, beside {held} MiB of libraries; losses\n"
            + " ".join(f"{loss:.6f}" for loss in losses)
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
