"""Times oprack against Paddle, ONNX Runtime and PyTorch: separate processes that take turns, same threads, same inputs.

    python tests/benchmarks/bench_models.py [--only det,lac] [--threads 1,2] [--rounds 15] [--out docs/benchmarks]

The peers live in .venv-peers, which `make bench` makes (peers.txt). Prints a table and writes it as JSON and as a
picture. A figure is the median over all rounds; the ratio is to the fastest peer in the same run.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

from engines import ENGINES, serves
from workloads import ROOT, Workload, workloads

HERE = Path(__file__).resolve().parent
PEERS = ROOT / ".venv-peers" / "bin" / "python"
OURS = ("oprack", "oprack (NumPy)")


@dataclass
class Result:
    """Figures of one engine on one workload: times in milliseconds, memory in MiB, start-up in seconds."""

    engine: str
    workload: str
    threads: int
    median_ms: float = 0.0
    p10_ms: float = 0.0
    p90_ms: float = 0.0
    peak_mib: float = 0.0
    start_up_s: float = 0.0
    difference: float = 0.0
    error: str = ""
    samples: list[list[float]] = field(default_factory=list, repr=False)


class Worker:
    """A process that has loaded one engine and waits for its turns."""

    def __init__(self, engine: str, workload: Workload, threads: int) -> None:
        python = sys.executable if engine in OURS else str(PEERS)
        self.result = Result(engine, workload.name, threads)
        self.times: list[float] = []
        start = time.perf_counter()
        self._process = subprocess.Popen(
            [python, str(HERE / "worker.py"), engine, workload.name, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        answer = self._read()
        self.result.start_up_s = time.perf_counter() - start
        if answer:
            self.result.samples = [o["sample"] for o in answer["outputs"]]

    def _read(self) -> dict:
        assert self._process.stdout and self._process.stderr
        line = self._process.stdout.readline()
        if line:
            return json.loads(line)
        tail = self._process.stderr.read().strip().splitlines()
        self.result.error = tail[-1] if tail else "ended without a word"
        return {}

    def turn(self, runs: int) -> None:
        """Time some runs."""
        if self.result.error:
            return
        assert self._process.stdin
        print(runs, file=self._process.stdin, flush=True)
        answer = self._read()
        if answer:
            self.times += answer["times"]
            self.result.peak_mib = answer["peak_mib"]

    def finish(self) -> Result:
        """Stop the process and work out the figures."""
        if self._process.stdin:
            self._process.stdin.close()
        self._process.wait(timeout=60)
        if self.times:
            ordered = sorted(t * 1e3 for t in self.times)
            self.result.median_ms = statistics.median(ordered)
            self.result.p10_ms, self.result.p90_ms = ordered[len(ordered) // 10], ordered[len(ordered) * 9 // 10]
        return self.result


def compare(results: list[Result]) -> None:
    """Set each result's largest difference from the first engine's outputs, relative to their largest element."""
    base = next((r.samples for r in results if r.samples), [])
    for r in results:
        for mine, other in zip(base, r.samples, strict=False):
            size = max(1e-6, max(map(abs, mine), default=0.0))
            gap = max((abs(a - b) for a, b in zip(mine, other, strict=False)), default=0.0)
            r.difference = max(r.difference, gap / size if len(mine) == len(other) else float("inf"))


def measure(workload: Workload, threads: int, rounds: int, seconds: float) -> list[Result]:
    """All engines on one workload, in turns of about `seconds` each."""
    workers = [Worker(e, workload, threads) for e in ENGINES if serves(e, workload)]
    for w in workers:
        w.turn(2)
        w.times.clear()
    per_turn = {}
    for w in workers:
        begin = time.perf_counter()
        w.turn(1)
        per_turn[id(w)] = max(1, min(200, int(seconds / max(1e-6, time.perf_counter() - begin))))
        w.times.clear()
    for _ in range(rounds):
        for w in workers:
            time.sleep(0.03)  # threads of the one before stop spinning
            w.turn(per_turn[id(w)])
    results = [w.finish() for w in workers]
    compare(results)
    return results


def table(results: list[Result]) -> str:
    """One line for each engine and workload; ratio: oprack's median over that of the fastest peer."""
    head = (
        f"{'workload':<24}{'T':>2}  {'engine':<15}{'median':>9}{'p10':>9}{'p90':>9}{'ratio':>7}{'MiB':>7}{'start':>7}"
    )
    lines = [head + "  difference"]
    for r in results:
        peers = [
            p.median_ms
            for p in results
            if (p.workload, p.threads) == (r.workload, r.threads) and p.engine not in OURS and p.median_ms
        ]
        ratio = f"{r.median_ms / min(peers):.2f}" if r.engine in OURS and peers and r.median_ms else ""
        if r.error:
            lines.append(f"{r.workload:<24}{r.threads:>2}  {r.engine:<15}{r.error[:80]}")
            continue
        times = f"{r.median_ms:>9.2f}{r.p10_ms:>9.2f}{r.p90_ms:>9.2f}{ratio:>7}"
        lines.append(
            f"{r.workload:<24}{r.threads:>2}  {r.engine:<15}{times}{r.peak_mib:>7.0f}{r.start_up_s:>7.2f}  "
            f"{r.difference:.1e}"
        )
    return "\n".join(lines)


def _fastest(results: list[Result], group: tuple[str, int]) -> float:
    """Smallest median of a workload at a number of threads."""
    return min((r.median_ms for r in results if (r.workload, r.threads) == group and r.median_ms), default=1.0)


def picture(results: list[Result], path: Path) -> None:
    """Bars of the medians, a group for each workload."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    groups = list(dict.fromkeys((r.workload, r.threads) for r in results))
    figure, axes = plt.subplots(figsize=(10, 0.6 * len(groups) + 2))
    height = 0.8 / len(ENGINES)
    for k, engine in enumerate(ENGINES):
        found = {(r.workload, r.threads): r for r in results if r.engine == engine and r.median_ms}
        base = {
            g: min((r.median_ms for r in results if (r.workload, r.threads) == g and r.median_ms), default=1)
            for g in groups
        }
        ys = [i + k * height for i, g in enumerate(groups) if g in found]
        axes.barh(ys, [found[g].median_ms / base[g] for g in groups if g in found], height, label=engine)
    axes.set_yticks([i + 0.4 for i in range(len(groups))], [f"{w}, {t} thread(s)" for w, t in groups])
    axes.invert_yaxis()
    axes.set_xlabel("median time, relative to the fastest engine (shorter is better)")
    axes.set_xscale("log")
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="parts of names of workloads, separated by commas")
    parser.add_argument("--threads", default="2", help="numbers of threads, separated by commas")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=0.3, help="length of a turn")
    parser.add_argument("--out", type=Path, help="folder for results.json, results.txt and results.png")
    options = parser.parse_args()
    wanted = [w for w in workloads() if not options.only or any(p in w.name for p in options.only.split(","))]
    results: list[Result] = []
    for threads in map(int, options.threads.split(",")):
        for workload in wanted:
            part = measure(workload, threads, options.rounds, options.seconds)
            results += part
            print(table(part), flush=True)
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        about = {"date": datetime.date.today().isoformat(), "machine": platform.processor() or platform.machine(),
                 "cpus": os.cpu_count(), "python": platform.python_version()}  # fmt: skip
        plain = [{k: v for k, v in asdict(r).items() if k != "samples"} for r in results]
        (options.out / "results.json").write_text(json.dumps({"about": about, "results": plain}, indent=1) + "\n")
        (options.out / "results.txt").write_text(f"{json.dumps(about)}\n\n{table(results)}\n")
        picture(results, options.out / "results.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
