"""Growth curves: what more ops in a chain, more sequences in a batch and more installed packs cost.

    python tests/benchmarks/bench_growth.py [--only ops,sequences,packs] [--threads 1] [--rounds 5] [--out FOLDER]

ops: chains of tiny ones; "plan us" is what oprack's plan of NumPy kernels costs per op, copying of inputs and outputs
included, beyond these kernels called in a straight loop. sequences: LAC, sentences of 5 to 60 characters. packs: what
discovery adds to the start of an interpreter, of packs with two ops each. An engine that took long to start is not
asked for more. Writes growth.txt, .json and .png.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import bench_discovery
from bench_models import about
from engines import USUAL
from turns import measure
from workloads import CHAIN_LENGTHS, MODELS, SEQUENCES, names, workload

PACKS = (1, 10, 100, 1000)
_LONGEST_START = 3.0  # seconds more than at the smallest size, of who is asked for the next: OpenVINO's grow by squares
PARTS = {"ops": "ops in a chain", "sequences": "sequences per batch (LAC)", "packs": "installed packs"}


@dataclass
class Point:
    """One figure of a curve: milliseconds, and microseconds of each op, sequence or pack.

    plan_us: microseconds of each op that are the plan's own, and peak_mib: memory; None where they were not measured.
    """

    part: str
    count: int
    curve: str
    ms: float
    us_each: float
    plan_us: float | None = None
    peak_mib: float | None = None


def points_of_models(part: str, name: str, counts: tuple[int, ...], threads: int, rounds: int) -> list[Point]:
    """A curve for every engine that serves these workloads, up to where it takes too long to start."""
    points, engines, first = [], list(USUAL), dict[str, float]()
    for count in counts:
        found = [r for r in measure(workload(name.format(count)), threads, rounds, 0.2, engines) if not r.error]
        late = [r.engine for r in found if r.start_up_s - first.setdefault(r.engine, r.start_up_s) > _LONGEST_START]
        engines = [e for e in engines if e not in late]
        us = {r.engine: 1e3 * r.median_ms / count for r in found}
        row = [Point(part, count, r.engine, r.median_ms, us[r.engine], peak_mib=r.peak_mib) for r in found]
        for p in row:
            if p.curve == "oprack (NumPy)" and "bare kernels" in us:
                p.plan_us = p.us_each - us["bare kernels"]
        print(table(row), flush=True)
        points += row
    return points


def points_of_packs(counts: tuple[int, ...], repeat: int) -> list[Point]:
    """Discovery without and with its cache, and `oprack packs`."""
    points = []
    for count in counts:
        found = bench_discovery.measure(count, repeat)
        row = [Point("packs", count, kind, 1e3 * s, 1e6 * s / count) for kind, s in found.items()]
        print(table(row), flush=True)
        points += row
    return points


def table(points: list[Point]) -> str:
    """One line for each figure."""
    lines = [f"{'what grows':<27}{'count':>7}  {'curve':<16}{'ms':>11}{'us each':>11}{'plan us':>9}{'MiB':>7}"]
    for p in points:
        own = "" if p.plan_us is None else f"{p.plan_us:.2f}"
        memory = "" if p.peak_mib is None else f"{p.peak_mib:.0f}"
        line = f"{PARTS[p.part]:<27}{p.count:>7}  {p.curve:<16}{p.ms:>11.3f}{p.us_each:>11.2f}{own:>9}{memory:>7}"
        lines.append(line.rstrip())
    return "\n".join(lines)


def picture(points: list[Point], path: Path) -> None:
    """One diagram for each part, both axes logarithmic."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    parts = list(dict.fromkeys(p.part for p in points))
    figure, all_axes = plt.subplots(1, len(parts), figsize=(5.5 * len(parts), 4.5), squeeze=False)
    for part, axes in zip(parts, all_axes[0], strict=True):
        mine = [p for p in points if p.part == part and p.ms > 0]
        for curve in dict.fromkeys(p.curve for p in mine):
            line = [(p.count, p.ms) for p in mine if p.curve == curve]
            axes.plot([x for x, _ in line], [y for _, y in line], marker="o", markersize=3, label=curve)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel(PARTS[part])
        axes.set_ylabel("milliseconds")
        axes.grid(alpha=0.3)
        axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PARTS), help="parts, separated by commas")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, help="folder for growth.txt, growth.json and growth.png")
    options = parser.parse_args()
    wanted, points = options.only.split(","), []
    if "ops" in wanted:
        chains = tuple(n for n in CHAIN_LENGTHS if (MODELS / f"tiny_ops_{n}.pdmodel").exists())
        points += points_of_models("ops", "{} tiny ops", chains, options.threads, options.rounds)
    if "sequences" in wanted and "lac batch 1" in names():
        points += points_of_models("sequences", "lac batch {}", SEQUENCES, options.threads, options.rounds)
    if "packs" in wanted:
        points += points_of_packs(PACKS, options.rounds)
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        where = about() | {"threads": options.threads}
        (options.out / "growth.txt").write_text(f"{json.dumps(where)}\n\n{table(points)}\n")
        rows = [vars(p) for p in points]
        (options.out / "growth.json").write_text(json.dumps({"about": where, "points": rows}, indent=1) + "\n")
        picture(points, options.out / "growth.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
