"""Engines take turns: a process for each has loaded the model and waits until it is asked for some runs."""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from engines import BEFORE, ENGINES, LOW_PRECISION, OURS, USUAL, comparable, serves
from workloads import ROOT, Workload

HERE = Path(__file__).resolve().parent
PYTHONS = {e: sys.executable if e in OURS else str(ROOT / ".venv-peers" / "bin" / "python") for e in ENGINES}
"""The interpreter that runs each engine; that of BEFORE is set by who has another checkout."""
PYTHONS.pop(BEFORE)


@dataclass
class Result:
    """Figures of one engine on one workload: times in milliseconds, memory in MiB, start-up in seconds.

    difference: None where there is nothing to compare with.
    """

    engine: str
    workload: str
    threads: int
    median_ms: float = 0.0
    p10_ms: float = 0.0
    p90_ms: float = 0.0
    peak_mib: float = 0.0
    start_up_s: float = 0.0
    difference: float | None = None
    error: str = ""
    outputs: list[dict] = field(default_factory=list, repr=False)

    def set_times(self, seconds: Sequence[float]) -> None:
        """Median and deciles of runs."""
        ordered = sorted(t * 1e3 for t in seconds)
        self.median_ms = statistics.median(ordered)
        self.p10_ms, self.p90_ms = ordered[len(ordered) // 10], ordered[len(ordered) * 9 // 10]


def _environment() -> dict[str, str]:
    """That of this process; but compiled modules are kept, as an installation would have them: start-up counts."""
    return {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


class Worker:
    """A process that has loaded one engine and waits for its turns.

    Args:
        engine: Which.
        workload: What it runs.
        threads: Its own, for each run.
        cpus: How many it may use; 0 for one for each thread.
        at_once: Return before the engine is loaded, so that another loads beside it; `wait` is to be called then.
        kept: A folder for what the engine keeps of the model from process to process.
    """

    def __init__(
        self,
        engine: str,
        workload: Workload,
        threads: int,
        cpus: int = 0,
        at_once: bool = False,
        kept: Path | None = None,
    ) -> None:
        self.result = Result(engine, workload.name, threads)
        self.times: list[float] = []
        self._start, self._comparable = time.perf_counter(), comparable(engine, workload)
        arguments = [engine, workload.name, str(threads), str(cpus or threads), *([] if kept is None else [str(kept)])]
        self._process = subprocess.Popen(
            [PYTHONS[engine], str(HERE / "worker.py"), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=_environment(),
        )
        if not at_once:
            self.wait()

    def wait(self) -> None:
        """Wait until the engine is loaded and has run once."""
        answer = self._read()
        self.result.start_up_s = time.perf_counter() - self._start
        if answer:
            self.result.peak_mib = answer["peak_mib"]
            self.result.outputs = answer["outputs"] if self._comparable else []

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
        self.times += self._ask(str(runs)).get("times", [])

    def clones(self, seconds: float) -> tuple[float, float]:
        """Runs a second of one Python thread alone, and of two together that have a model each; 0 after an error."""
        answer = self._ask(f"clones {seconds}")
        return answer.get("alone", 0.0), answer.get("together", 0.0)

    def _ask(self, line: str) -> dict:
        if self.result.error:
            return {}
        assert self._process.stdin
        print(line, file=self._process.stdin, flush=True)
        answer = self._read()
        self.result.peak_mib = answer.get("peak_mib", self.result.peak_mib)
        return answer

    def finish(self) -> Result:
        """Stop the process and work out the figures."""
        self._process.communicate(timeout=60)
        if self.times:
            self.result.set_times(self.times)
        return self.result


def _gap(a: float, b: float) -> float:
    """How far two numbers are apart; infinity where one alone is NaN."""
    if a == b or (math.isnan(a) and math.isnan(b)):
        return 0.0
    return float("inf") if math.isnan(a - b) else abs(a - b)


def compare(results: list[Result]) -> None:
    """Set each result's largest difference from the first engine's outputs, relative to their largest element.

    An engine whose outputs are others has computed something else, so its times mean nothing: that is an error.
    """
    base = next((r.outputs for r in results if r.outputs), [])
    for r in results:
        for want, got in zip(base, r.outputs, strict=False):
            mine, other = want["sample"], got["sample"]
            gap = max(map(_gap, mine, other), default=0.0)
            gap = gap / max(1e-6, want["largest"]) if len(mine) == len(other) else float("inf")
            r.difference = max(r.difference or 0.0, gap)
        if not r.error and not (r.difference or 0.0) <= (0.5 if r.engine in LOW_PRECISION else 0.01):
            r.error = f"outputs that differ by {r.difference:.1e} of the largest"


def measure(
    workload: Workload,
    threads: int,
    rounds: int,
    seconds: float,
    engines: Sequence[str] = USUAL,
    at_once: bool = False,
    rest: float = 0.4,
) -> list[Result]:
    """The engines on one workload, in turns of about `seconds` each.

    Args:
        workload: What is timed.
        threads: Threads of each engine.
        rounds: How many turns each has.
        seconds: How long one turn is.
        engines: Which of those that serve the workload.
        at_once: Load them side by side; their times to start mean nothing then.
        rest: Seconds before each turn: threads of the one before go on spinning, Intel's OpenMP for 0.2 s.
    """
    served = [e for e in engines if e in PYTHONS and serves(e, workload)]
    workers = [Worker(e, workload, threads, at_once=at_once) for e in served]
    for w in workers if at_once else ():
        w.wait()
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
            time.sleep(rest)
            w.turn(per_turn[id(w)])
    results = [w.finish() for w in workers]
    compare(results)
    return results


def measure_start_up(
    workload: Workload, threads: int, rounds: int, engines: Sequence[str] = USUAL, again: bool = False
) -> list[Result]:
    """New processes to the first result, one engine after the other in every round; the first round is not counted.

    Args:
        workload: What the first result is of.
        threads: Threads of each engine.
        rounds: How many processes of each engine are counted.
        engines: Which of those that serve the workload.
        again: Let engines keep on disk what they make of the model, each in a folder of its own: the processes that
            count find there what the first one kept.
    """
    engines = [e for e in engines if e in PYTHONS and serves(e, workload)]
    found: dict[str, list[Result]] = {e: [] for e in engines}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds + 1):
            for engine in engines:
                kept = Path(folder, engine) if again else None
                found[engine].append(Worker(engine, workload, threads, kept=kept).finish())
    results = []
    for counted in found.values():
        result = counted[-1]
        result.workload = f"start{' again' * again} {workload.name}"
        if not result.error:
            result.set_times([r.start_up_s for r in counted[1:]])
            result.peak_mib = statistics.median(r.peak_mib for r in counted[1:])
        results.append(result)
    compare(results)
    return results
