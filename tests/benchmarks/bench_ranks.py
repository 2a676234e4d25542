"""A training step of ResNet-18 and of an encoder on one rank and on two, beside PyTorch's DDP and FSDP2 with gloo; what
an all_reduce takes, and what a call takes whose tensors lie on two ranks, beside PyTorch's DTensor.

    python tests/benchmarks/bench_ranks.py [--rounds 30] [--batch 16] [--nets resnet18] [--out ranks.txt]

32x32 images; sequences of 64 vectors through four layers, 256 wide; one thread a rank, Momentum. Two processes of
each engine have every configuration of it and take turns: in a round each runs one step that does not count and one
that does, both ranks at the same time, while all others wait; the figure is that of the rank that is done later. What
sends nothing is run by each rank alone as well, where that of the slower rank counts. t2/t1 is the median of the
rounds' ratios to it, with quartiles: 1.0 where two ranks do twice the work in the same time, each with as much data
as the one rank has. Then come the ratios to DDP's and to FSDP2's step. On a machine with two cores a rank has one
core on either number of ranks, and both share caches and memory: the lines of two processes that train at the same
time and send nothing say what that alone takes, below which no way of sending gradients can go. Figures are added to
the file, so that each net may have its own run.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import socket
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PEERS = ROOT / ".venv-peers" / "bin" / "python"
SIZES = (4, 1 << 12, 1 << 16, 1 << 20, 1 << 22)
"""Bytes of the arrays that are reduced."""
NAMES = {
    "oprack": "oprack, DataParallel over MPI",
    "oprack zero 1": "oprack, that with Zero stage 1",
    "oprack zero": "oprack, Zero stage 2 over MPI",
    "oprack apart": "oprack, two processes that send nothing",
    "torch": "torch, DistributedDataParallel over gloo",
    "torch fsdp": "torch, fully_shard (FSDP2) over gloo",
    "torch apart": "torch, two processes that send nothing",
}
TITLES = {"resnet18": "a training step of ResNet-18", "encoder": "a training step of an encoder"}
RANKS = 2
WARM_UP = 4
"""Rounds that do not count."""


class Pair:
    """The ranks of one engine, which run steps of its configurations when they are asked.

    Args:
        engine: "oprack" or "torch".
        net: Key of TITLES.
        options: Of the command line.
        configurations: Keys of NAMES.
    """

    def __init__(self, engine: str, net: str, options: argparse.Namespace, configurations: Sequence[str]) -> None:
        environment = os.environ | {
            name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        }
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        with socket.socket() as server, socket.socket() as probe:
            for one in (server, probe):
                one.bind(("127.0.0.1", 0))
            server.listen()
            ports = [str(one.getsockname()[1]) for one in (server, probe)]
            worker = [str(HERE / "ranks_worker.py"), engine, net, str(options.batch), ports[0], *configurations]
            commands, environments = (
                [[sys.executable, "-m", "oprack", "launch", "-n", str(RANKS), *worker]],
                [environment],
            )
            if engine == "torch":
                environment |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": ports[1], "WORLD_SIZE": str(RANKS)}
                environments = [environment | {"RANK": str(r)} for r in range(RANKS)]
                commands = [[str(options.torch), *worker]] * RANKS
            probe.close()
            self._processes = [subprocess.Popen(c, env=e) for c, e in zip(commands, environments, strict=True)]
            server.settimeout(300)
            files = [server.accept()[0].makefile("rw") for _ in range(RANKS)]
        self._files = dict(sorted((int(file.readline()), file) for file in files))

    def ask(self, what: str, *ranks: int) -> list[Any]:
        """What some ranks, or all, answer to a request that they get at the same time."""
        files = [self._files[r] for r in ranks or self._files]
        for file in files:
            print(what, file=file, flush=True)
        return [json.loads(file.readline()) for file in files]

    def end(self) -> None:
        """Wait for the end of the processes."""
        for file in self._files.values():
            file.close()
        for process in self._processes:
            process.wait(timeout=60)


def measure(
    net: str, engines: Sequence[str], options: argparse.Namespace
) -> tuple[dict[str, list[float]], dict[str, Any]]:
    """(times of each configuration in ms, those of one rank as "... alone"; what each engine answers to "more")."""
    owners = list(dict.fromkeys(e.split()[0] for e in engines))
    pairs = {o: Pair(o, net, options, [e for e in engines if e.split()[0] == o] + [f"{o} apart"]) for o in owners}
    found: dict[str, list[float]] = {e: [] for e in (*engines, *(f"{o} alone" for o in owners))}
    for k in range(WARM_UP + options.rounds):
        for e in list(found)[:: 1 if k % 2 else -1]:
            owner, *how = e.split()
            what, turns = (f"{owner} apart", [(r,) for r in range(RANKS)]) if how == ["alone"] else (e, [()])
            times = list[float]()
            for ranks in turns:
                pairs[owner].ask(what, *ranks)
                times += pairs[owner].ask(what, *ranks)
            if k >= WARM_UP:
                found[e].append(max(times))
    more = {o: pair.ask("more")[0] for o, pair in pairs.items()} if net == "resnet18" else {}
    for pair in pairs.values():
        pair.end()
    return found, more


def ratio(values: Sequence[float], others: Sequence[float]) -> str:
    """The median of ratios, and their quartiles."""
    low, middle, high = statistics.quantiles([a / b for a, b in zip(values, others, strict=True)], n=4)
    return f"{middle:6.3f} {low:5.2f}-{high:4.2f}"


def report(net: str, found: dict[str, list[float]], more: dict[str, Any]) -> str:
    """The figures as text."""
    lines = [f"{TITLES[net]:42s}  ranks   median       t2/t1, quartiles           DDP's         FSDP2's"]
    for engine, values in found.items():
        owner, *how = engine.split()
        if how == ["alone"]:
            lines.append(f"{f'{owner}, one rank alone':42s}  {1:5d}  {statistics.median(values):7.1f}")
            continue
        line = f"{NAMES[engine]:42s}  {RANKS:5d}  {statistics.median(values):7.1f}"
        for other in (f"{owner} alone", "torch", "torch fsdp"):
            line += f"  {ratio(values, found[other])}" if other in found else ""
        lines.append(line)
    if not more:
        return "\n".join(lines)
    lines += ["", f"{'an all_reduce of two ranks':42s}     " + "".join(f"{b:>12,} B" for b in SIZES)]
    for owner, answer in more.items():
        times = answer["all_reduce_us"]
        lines.append(f"{NAMES[owner]:42s} us  " + "".join(f"{m:14.1f}" for m in times))
        rates = [b / m / 1e3 for b, m in zip(SIZES, times, strict=True)]
        lines.append(f"{'':42s} GB/s" + "".join(f"{r:14.2f}" for r in rates))
    names = list(more["oprack"]["calls_us"])
    lines += ["", f"{'a call of 8x8 numbers a rank, us':42s}     " + "".join(f"{n:>14s}" for n in names)]
    for owner, answer in more.items():
        kind = "torch, DTensor" if owner == "torch" else "oprack, global tensors"
        lines.append(f"{kind:42s}     " + "".join(f"{answer['calls_us'][n]:14.2f}" for n in names))
    lines += ["", f"bytes of gradients that a rank of ResNet-18 reduces in a step: {more['oprack']['bytes']:,}"]
    return "\n".join(lines)


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--batch", type=int, default=16, help="images a rank")
    parser.add_argument("--torch", type=Path, default=PEERS, help="a Python that has torch (%(default)s)")
    parser.add_argument("--engines", default=",".join(NAMES), help="which take part (%(default)s); oprack has to")
    parser.add_argument("--nets", default=",".join(TITLES), help="which nets (%(default)s); resnet18 has calls, too")
    parser.add_argument("--out", type=Path, help="a file to which the figures are added")
    options = parser.parse_args()
    texts = [report(net, *measure(net, options.engines.split(","), options)) for net in options.nets.split(",")]
    about = (
        f"python tests/benchmarks/bench_ranks.py --rounds {options.rounds}, batch {options.batch} a rank, "
        f"{os.cpu_count()} cores, Python {platform.python_version()}; times in ms"
    )
    text = "\n\n".join([about, *texts]) + "\n"
    print(text)
    if options.out:
        with options.out.open("a") as file:
            file.write(text if not file.tell() else f"\n{text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
