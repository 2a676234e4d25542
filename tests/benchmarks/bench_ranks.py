"""A training step of ResNet-18 and of an encoder on one rank and on two, beside PyTorch's DDP and FSDP2 with gloo; what
an all_reduce takes, and what a call takes whose tensors lie on two ranks, beside PyTorch's DTensor.

    python tests/benchmarks/bench_ranks.py [--rounds 7] [--steps 15] [--batch 16] [--nets resnet18] [--out ranks.txt]

32x32 images; sequences of 64 vectors through four layers, 256 wide; one thread a rank, Momentum. In each round every
configuration runs once, in processes of its own: three steps that do not count, and then the steps whose median is the
round's figure. Figures are medians over the rounds, and t2/t1 is the median of the rounds' ratios: 1.0 where two ranks
do twice the work in the same time, each with as much data as the one rank has. Then come the ratios to DDP's and to
FSDP2's step on two ranks. On a machine with two cores a rank has one core on either number of ranks, and both share
caches and memory: the lines of two processes that train at the same time and send nothing say what that alone takes,
below which no way of sending gradients can go. Figures are added to the file, so that each net may have its own run.
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
    "oprack zero": "oprack, Zero stage 2 over MPI",
    "oprack apart": "oprack, two processes that send nothing",
    "torch": "torch, DistributedDataParallel over gloo",
    "torch fsdp": "torch, fully_shard (FSDP2) over gloo",
    "torch apart": "torch, two processes that send nothing",
}
TITLES = {"resnet18": "a training step of ResNet-18", "encoder": "a training step of an encoder"}
ONCE = {"oprack zero": "oprack", "oprack apart": "oprack", "torch fsdp": "torch", "torch apart": "torch"}
"""Engines that have nothing to do on one rank, and whose figures on one rank count for them."""


def run(engine: str, net: str, ranks: int, options: argparse.Namespace) -> dict[str, Any]:
    """One configuration in processes of its own: what its first rank prints."""
    worker = [str(HERE / "ranks_worker.py"), engine, net, str(options.steps), str(options.batch), json.dumps(SIZES)]
    environment = os.environ | {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    if engine.startswith("torch"):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            environment |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(probe.getsockname()[1])}
        environments = [environment | {"RANK": str(r), "WORLD_SIZE": str(ranks)} for r in range(ranks)]
        commands = [[str(options.torch), *worker]] * ranks
    else:
        environments = [environment]
        commands = [[sys.executable, "-m", "oprack", "launch", "-n", str(ranks), *worker]]
    processes = [
        subprocess.Popen(c, env=e, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for c, e in zip(commands, environments, strict=True)
    ]
    answers = [p.communicate(timeout=600) for p in processes]
    line = next((x for out, _ in answers for x in out.splitlines() if x.startswith("{")), None)
    if line is None or any(p.returncode for p in processes):
        raise SystemExit(f"{engine}, {net} on {ranks} ranks failed:\n{answers[0][1][-2000:]}")
    found: dict[str, Any] = json.loads(line)
    return found


def report(found: dict[tuple[str, str, int], list[dict[str, Any]]], engines: Sequence[str], nets: Sequence[str]) -> str:
    """The figures as text."""
    lines = []
    for net in nets:
        head = f"{TITLES[net]:42s}  ranks   median      min      max   t2/t1   DDP's   FSDP2's  t2/t1 of each round"
        lines.append(head)
        for engine in engines:
            for n in (1, 2):
                if (engine, net, n) not in found:
                    continue
                values = [r["step_ms"] for r in found[engine, net, n]]
                middle = statistics.median(values)
                line = f"{NAMES[engine]:42s}  {n:5d}  {middle:7.1f}  {min(values):7.1f}  {max(values):7.1f}"
                if n == 2:
                    one = [r["step_ms"] for r in found[ONCE.get(engine, engine), net, 1]]
                    ratios = [b / a for a, b in zip(one, values, strict=True)]
                    line += f"  {statistics.median(ratios):6.3f}"
                    for peer in ("torch", "torch fsdp"):
                        theirs = [r["step_ms"] for r in found.get((peer, net, 2), [])]
                        parts = [b / a for a, b in zip(theirs, values, strict=False)]
                        line += f"  {statistics.median(parts):6.3f}" if parts else "        "
                    line += f"    {' '.join(f'{r:.2f}' for r in ratios)}"
                lines.append(line)
        lines.append("")
    if "resnet18" not in nets:
        return "\n".join(lines[:-1])
    both = [e for e in engines if e not in ONCE]
    lines.append(f"{'an all_reduce of two ranks':42s}     " + "".join(f"{b:>12,} B" for b in SIZES))
    for engine in both:
        medians = [
            statistics.median(r["all_reduce_us"][k] for r in found[engine, "resnet18", 2]) for k in range(len(SIZES))
        ]
        lines.append(f"{NAMES[engine]:42s} us  " + "".join(f"{m:14.1f}" for m in medians))
        rates = [b / m / 1e3 for b, m in zip(SIZES, medians, strict=True)]
        lines.append(f"{'':42s} GB/s" + "".join(f"{r:14.2f}" for r in rates))
    names = list(found["oprack", "resnet18", 2][0]["calls_us"])
    lines += ["", f"{'a call of 8x8 numbers a rank, us':42s}     " + "".join(f"{n:>14s}" for n in names)]
    for engine in both:
        least = [min(r["calls_us"][n] for r in found[engine, "resnet18", 2]) for n in names]
        kind = "torch, DTensor" if engine == "torch" else "oprack, global tensors"
        lines.append(f"{kind:42s}     " + "".join(f"{v:14.2f}" for v in least))
    sent = found["oprack", "resnet18", 2][0]
    lines += ["", f"bytes of gradients that a rank of ResNet-18 reduces in a step: {sent['bytes']:,}"]
    return "\n".join(lines)


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=15, help="that count, of each configuration in a round")
    parser.add_argument("--batch", type=int, default=16, help="images a rank")
    parser.add_argument("--torch", type=Path, default=PEERS, help="a Python that has torch (%(default)s)")
    parser.add_argument("--engines", default=",".join(NAMES), help="which take part (%(default)s)")
    parser.add_argument("--nets", default=",".join(TITLES), help="which nets (%(default)s); resnet18 has calls, too")
    parser.add_argument("--out", type=Path, help="a file to which the figures are added")
    options = parser.parse_args()
    engines, nets = options.engines.split(","), options.nets.split(",")
    configurations = [(e, k, n) for k in nets for e in engines for n in (1, 2) if n == 2 or e not in ONCE]
    found: dict[tuple[str, str, int], list[dict[str, Any]]] = {c: [] for c in configurations}
    for k in range(options.rounds):
        for c in configurations:
            found[c].append(run(*c, options))
            what = f"round {k + 1}, {c[1]}, {NAMES[c[0]]}, {c[2]} ranks"
            print(f"{what}: {found[c][-1]['step_ms']:.1f} ms", flush=True)
    about = (
        f"python tests/benchmarks/bench_ranks.py --rounds {options.rounds} --steps {options.steps}, batch "
        f"{options.batch} a rank, {os.cpu_count()} cores, Python {platform.python_version()}; times in ms"
    )
    text = f"{about}\n\n{report(found, engines, nets)}\n"
    print(f"\n{text}")
    if options.out:
        with options.out.open("a") as file:
            file.write(text if not file.tell() else f"\n{text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
