"""Times oprack against Paddle, ONNX Runtime and PyTorch: separate processes that take turns, same threads, same inputs.

    python tests/benchmarks/bench_models.py [--only det,lac] [--threads 1,2] [--rounds 15] [--out docs/benchmarks]
    python tests/benchmarks/bench_models.py --before ../oprack-before --engines oprack     # two commits side by side

The peers live in .venv-peers, which `make bench` makes (peers.txt). Prints a table and writes it as JSON and as a
picture. A figure is the median over all rounds; the ratio is to the fastest peer in the same run. Workloads "start ..."
time new processes up to their first result, with nothing kept from one to the next but bytecode and oprack's index of
installed packs; "start again ..." those that find what an earlier process of the engine kept of the model on disk, with
each engine's own means.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from engines import BEFORE, ENGINES, USUAL
from report import picture, table
from turns import PYTHONS, Result, measure, measure_start_up
from workloads import names, workload

STARTED = ("ocr_det 1x3x736x736", "lac batch 1")
# by what the name of the line begins with: whether engines keep what they made of the model on disk
START_UP = {f"start{' again' * again} {name}": (name, again) for name in STARTED for again in (False, True)}


def about() -> dict[str, Any]:
    """When and where a run was made."""
    return {
        "date": datetime.date.today().isoformat(),
        "machine": platform.processor() or platform.machine(),
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
    }


def chosen_engines(options: argparse.Namespace) -> list[str]:
    """Engines named by --engines and --before."""
    named = options.engines.split(",") if options.engines else USUAL
    engines = [e for e in ENGINES if e in named]
    if options.before:
        PYTHONS[BEFORE] = str(options.before.absolute() / ".venv" / "bin" / "python")
        engines = list(dict.fromkeys(["oprack", BEFORE, *engines]))
    return engines


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="parts of names of workloads, separated by commas")
    parser.add_argument("--threads", default="2", help="numbers of threads, separated by commas")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=0.3, help="length of a turn")
    parser.add_argument("--out", type=Path, help="folder for results.json, results.txt and results.png")
    parser.add_argument("--engines", default="", help="engines that take part, separated by commas; all without it")
    parser.add_argument("--before", type=Path, help="another checkout, set up, whose oprack takes turns with this one")
    options = parser.parse_args()
    engines = chosen_engines(options)
    there = names()
    offered = [*there, *(line for line, (name, _) in START_UP.items() if name in there)]
    wanted = [n for n in offered if not options.only or any(p in n for p in options.only.split(","))]
    if not wanted:
        parser.error(f"no workload has {options.only!r} in its name; there are {', '.join(offered)}")
    results: list[Result] = []
    for threads in map(int, options.threads.split(",")):
        for name in wanted:
            if name in START_UP:
                started, again = START_UP[name]
                part = measure_start_up(workload(started), threads, max(3, options.rounds // 2), engines, again)
            else:
                part = measure(workload(name), threads, options.rounds, options.seconds, engines)
            results += part
            print(table(part), flush=True)
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        where = about()
        plain = [{k: v for k, v in asdict(r).items() if k != "outputs"} for r in results]
        (options.out / "results.json").write_text(json.dumps({"about": where, "results": plain}, indent=1) + "\n")
        (options.out / "results.txt").write_text(f"{json.dumps(where)}\n\n{table(results)}\n")
        picture(results, options.out / "results.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
