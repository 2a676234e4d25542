"""Times oprack as it is used: inputs of new sizes, runs after a pause, several Python threads, nets nobody tuned for.

    python tests/benchmarks/bench_use.py [--parts streams,idle,clones,nets,precision] [--threads 2] [--out FOLDER]
    python tests/benchmarks/bench_use.py --parts nets --only lenet,unet --out docs/benchmarks     # these lines anew
    python tests/benchmarks/bench_use.py --parts nets --engines oprack --before ../before --rounds 3   # what got slower

Engines take turns in processes of their own, as in bench_models.py; a ratio is oprack's figure to that of the best peer
in the same turns, below 1 where oprack is faster.

streams: 20 inputs, each of a size that the process has not met; mean time. idle: the first runs after half a second of
rest, against runs in a row. clones: runs a second of one Python thread, and of two that have a model of one thread
each. nets: every net of make_nets.py with one and with eight inputs, run after run and after a rest. precision: models
in float32, bfloat16 and int8; quantised models are made where there are none, in .downloads/bench_models/int8.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from bench_models import about, chosen_engines
from engines import BEFORE, OURS, PRECISIONS, peers_of, serves
from report import in_columns, ratios_picture
from turns import PYTHONS, Worker
from workloads import STREAM, names, nets, streams, workload

REST = 0.5
AFTER_A_REST = 4  # runs of a turn, as a page or a request brings them
CLONES = ("ocr_cls 1x3x48x192", "ocr_det 1x3x480x480", "lac batch 8")
PRECISE = ("ocr_det 1x3x736x736", "ocr_rec 6x3x48x320", "resnet50 batch 1", "mobilenet_v2 batch 1")
WITHOUT_RATIO = ("scaling", "worst ms")
Row = dict[str, object]


def _workers(name: str, threads: int, engines: Iterable[str], cpus: int = 0) -> list[Worker]:
    what = workload(name)
    workers = [Worker(e, what, threads, cpus, at_once=True) for e in engines if e in PYTHONS and serves(e, what)]
    for worker in workers:
        worker.wait()
    return workers


def _rows(name: str, threads: int, figures: dict[str, dict[str, float]], higher: bool = False) -> list[Row]:
    """A row for each engine. figures: by engine, then by what was measured; ratios are to the best of its peers.

    Where none takes part, they are to the checkout of before.
    """
    rows = []
    for engine, own in figures.items():
        row: Row = {"what": name, "T": threads, "engine": engine}
        for key, value in own.items():
            row[key] = round(value, 3)
            peers = [f[key] for e, f in figures.items() if e in peers_of(engine) and f.get(key)]
            if not peers and engine != BEFORE:
                peers = [f[key] for e, f in figures.items() if e == BEFORE and f.get(key)]
            if engine in OURS and peers and value and key not in WITHOUT_RATIO:
                row[f"{key} ratio"] = round(max(peers) / value if higher else value / min(peers), 2)
        rows.append(row)
    return rows


def stream(name: str, threads: int, rounds: int, engines: list[str]) -> list[Row]:
    """Mean milliseconds of inputs of sizes that are new to the process; the engines take turns at each."""
    workers = _workers(name, threads, engines)
    for _ in range(STREAM):
        for worker in workers:
            time.sleep(0.4)
            worker.turn(1)
    found = {w.result.engine: [t * 1e3 for t in w.times] for w in workers}
    for worker in workers:
        worker.finish()
    figures = {e: {"mean ms": statistics.mean(t), "worst ms": max(t)} for e, t in found.items() if t}
    return _rows(name, threads, figures)


def steady_and_idle(name: str, threads: int, rounds: int, engines: list[str]) -> list[Row]:
    """Median milliseconds of runs in a row, and of the first runs after a rest."""
    workers = _workers(name, threads, engines)
    figures: dict[str, dict[str, float]] = {}
    steady: dict[str, list[float]] = {w.result.engine: [] for w in workers}
    idle: dict[str, list[float]] = {w.result.engine: [] for w in workers}
    for worker in workers:
        worker.turn(3)
    for _ in range(rounds):
        for worker in workers:
            for runs, into in ((AFTER_A_REST, idle), (12, steady)):
                time.sleep(REST if into is idle else 0.0)
                worker.times.clear()
                worker.turn(runs)
                into[worker.result.engine] += worker.times
    for worker in workers:
        engine = worker.finish().engine
        if steady[engine]:
            at_rest, running = statistics.median(idle[engine]) * 1e3, statistics.median(steady[engine]) * 1e3
            figures[engine] = {"ms": running, "after a rest": at_rest}
    return _rows(name, threads, figures)


def clones(name: str, threads: int, rounds: int, engines: list[str]) -> list[Row]:
    """Runs a second of one Python thread, and of two; each model has one thread of its own."""
    figures: dict[str, dict[str, float]] = {}
    workers = _workers(name, 1, engines, cpus=2)
    found: dict[str, list[tuple[float, float]]] = {w.result.engine: [] for w in workers}
    for _ in range(max(3, rounds // 3)):
        for worker in workers:
            time.sleep(0.4)
            found[worker.result.engine].append(worker.clones(1.0))
    for worker in workers:
        engine = worker.finish().engine
        one, two = (statistics.median(rates) for rates in zip(*found[engine], strict=True))
        if one:
            figures[engine] = {"runs/s": one, "of two": two, "scaling": two / one}
    return _rows(name, 1, figures, higher=True)


def summaries(rows: list[Row]) -> list[str]:
    """The distribution of ratios over nets, a line for each."""
    lines = []
    for key in ("ms ratio", "after a rest ratio"):
        ratios = sorted(float(str(r[key])) for r in rows if r["engine"] == "oprack" and key in r)
        if ratios:
            worse = f"{sum(r > 1.0 for r in ratios)} of {len(ratios)} above 1.0"
            lines.append(f"{key}: median {statistics.median(ratios):.2f}, worst {ratios[-1]:.2f}, {worse}")
    return lines


def write(folder: Path, part: str, rows: list[Row]) -> None:
    """Write use.json, use.txt and use.png, in which lines that were not measured stay as they are."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "use.json"
    every: dict[str, list[Row]] = json.loads(file.read_text()) if file.exists() else {}
    every.pop("about", None)
    order = {name: i for i, name in enumerate(PARTS[part][1]())}
    measured = {(row["what"], row["T"]) for row in rows}
    kept = [row for row in every.get(part, []) if (row["what"], row["T"]) not in measured]
    every[part] = sorted([*kept, *rows], key=lambda row: order.get(str(row["what"]), len(order)))
    where = {key: value for key, value in about().items() if key != "date"}
    file.write_text(json.dumps({"about": where, **every}, indent=1) + "\n")
    tables = ["\n".join([f"== {part}", in_columns(rows), *summaries(rows)]) for part, rows in every.items()]
    (folder / "use.txt").write_text("\n\n".join([json.dumps(where), *tables]) + "\n")
    ratios_picture(every, folder / "use.png")


Measure = Callable[[str, int, int, list[str]], list[Row]]
PARTS: dict[str, tuple[Measure, Callable[[], list[str]]]] = {
    "streams": (stream, streams),
    "idle": (steady_and_idle, lambda: [n for n in names() if n.startswith(("ocr_", "lac", "mobilenet"))]),
    "clones": (clones, lambda: list(CLONES)),
    "nets": (steady_and_idle, nets),
    "precision": (steady_and_idle, lambda: [n for n in names() if n in PRECISE]),
}


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default="streams,idle,clones,nets,precision", help="tables, separated by commas")
    parser.add_argument("--only", default="", help="parts of names of workloads, separated by commas")
    parser.add_argument("--threads", default="2", help="numbers of threads, separated by commas")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--engines", default="", help="engines that take part, separated by commas; all without it")
    parser.add_argument("--before", type=Path, help="another checkout, set up, whose oprack takes turns with this one")
    parser.add_argument("--out", type=Path, help="folder for use.json, use.txt and use.png")
    options = parser.parse_args()
    engines = [
        e for e in chosen_engines(options) if e not in ("oprack (NumPy)", "oprack (numba)", "bare kernels", "torch")
    ]
    for part in options.parts.split(","):
        measure, offered = PARTS[part]
        found: list[Row] = []
        for name in offered():
            if options.only and not any(p in name for p in options.only.split(",")):
                continue
            for threads in [1] if part == "clones" else map(int, options.threads.split(",")):
                more = PRECISIONS if part == "precision" and not options.engines else ()
                rows = measure(name, threads, options.rounds, [*engines, *more])
                print(in_columns(rows), flush=True)
                found += [{**row, "date": about()["date"]} for row in rows]
                if options.out:
                    write(options.out, part, found)
        print("\n".join([f"== {part}", *summaries(found)]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
