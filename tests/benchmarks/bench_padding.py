"""An encoder on rows and on padded batches, by the share of padding: CPU time and memory.

    python tests/benchmarks/bench_padding.py [--rounds 5] [--draw]

2 layers, 256 wide, 8 heads, 1024 between; 16 texts, the longest of 128 words. Each form at each share is a process of
its own on one thread. A figure is the median of the CPU's time over the rounds; memory is by how much a step of
training raises the highest that the process ever had. Writes docs/benchmarks/padding.json, and draws padding.svg of it
beside it; `--draw` only draws.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

OUT = Path(__file__).resolve().parents[2] / "docs" / "benchmarks"
SHARES = (0.0, 0.2, 0.4, 0.6, 0.8)
LAYERS, WIDTH, HEADS, INNER, TEXTS, LONGEST = 2, 256, 8, 1024, 16, 128


def lengths_of(share: float) -> np.ndarray:
    """Lengths of the texts, of which the first is the longest, so that this share of a padded batch is padding."""
    lengths = np.linspace(LONGEST, max(2 * LONGEST * (1 - share) - LONGEST, 1), TEXTS).round().astype(int)
    missing = round(TEXTS * LONGEST * (1 - share)) - lengths.sum()
    while missing:  # spread over the texts but the first
        for i in range(1, TEXTS):
            step = int(np.sign(missing))
            if 1 <= lengths[i] + step <= LONGEST:
                lengths[i] += step
                missing -= step
            if not missing:
                break
    return lengths


def measure(form: str, share: float, rounds: int) -> dict[str, Any]:
    """Milliseconds forward and for a step, and MiB of a step, of one form."""
    import oprack
    from oprack import nn, sequences, to_tensor

    oprack.seed(1)
    net = nn.TransformerEncoder(nn.TransformerEncoderLayer(WIDTH, HEADS, INNER, 0.1, "gelu"), LAYERS)
    adam, compiled = oprack.optimizer.Adam(1e-4, parameters=net.parameters()), oprack.jit(net)
    random = np.random.default_rng(0)

    def arguments(lengths: np.ndarray) -> tuple[Any, ...]:
        texts = [random.standard_normal((n, WIDTH)).astype("float32") for n in lengths]
        rows = sequences.from_list(texts)
        if form == "rows":
            return (rows,)
        padded, kept = sequences.to_padded(rows)
        return padded, to_tensor(np.where(kept.numpy(), 0, -1e9).astype("float32")[:, None, None])

    def forward(given: tuple[Any, ...]) -> None:
        net.eval()
        with oprack.no_grad():
            compiled(*given).numpy()

    def step(given: tuple[Any, ...]) -> None:
        net.train()
        (compiled(*given) ** 2.0).mean().backward()
        adam.step()
        adam.clear_grad()

    small, batch = arguments(np.array([4, 2])), arguments(lengths_of(share))
    for run in (step, forward):
        run(small)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    step(batch)
    found: dict[str, Any] = {"memory": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024}
    for name, run in (("forward", forward), ("step", step)):
        run(batch)
        times = []
        for _ in range(rounds):
            start = time.process_time()
            run(batch)
            times.append(time.process_time() - start)
        found[name] = statistics.median(times) * 1e3
    return found


def ask(form: str, share: float, rounds: int) -> dict[str, Any]:
    """`measure` in a process of its own."""
    environment = os.environ | dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OPRACK_CPU_THREADS"), "1")
    command = [sys.executable, __file__, "--one", form, str(share), "--rounds", str(rounds)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=600)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def draw(results: dict[str, Any]) -> None:
    """The picture of the tutorial."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams |= {"svg.hashsalt": "padding", "svg.fonttype": "none"}  # the same file for the same figures
    import matplotlib.pyplot as plt

    parts = {"forward": "forward, ms", "step": "a step of training, ms", "memory": "memory of a step, MiB"}
    figure, all_axes = plt.subplots(1, len(parts), figsize=(11, 3.4), layout="constrained")
    shares = [100 * share for share in results["shares"]]
    for axes, (key, title) in zip(all_axes, parts.items(), strict=True):
        for form, style in (("padded", "s--"), ("rows", "o-")):
            axes.plot(shares, [found[key] for found in results[form]], style, label=form)
        axes.set(title=title, xlabel="padding, %", ylim=(0, None))
        axes.grid(alpha=0.3)
    all_axes[0].legend()
    figure.savefig(OUT / "padding.svg", metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--draw", action="store_true")
    parser.add_argument("--one", nargs=2, metavar=("FORM", "SHARE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one[0], float(options.one[1]), options.rounds)))
        return
    file = OUT / "padding.json"
    if not options.draw:
        results: dict[str, Any] = {"shares": SHARES, "rows": [], "padded": []}
        for share in SHARES:
            for form in ("rows", "padded"):
                results[form].append(ask(form, share, options.rounds))
            print(f"{share:.0%}: rows {results['rows'][-1]}, padded {results['padded'][-1]}", flush=True)
        file.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    draw(json.loads(file.read_text("utf-8")))


if __name__ == "__main__":
    main()
