"""One engine on one workload in a process of its own: waits for its turn on standard input.

    python worker.py ENGINE WORKLOAD THREADS CPUS [FOLDER]

FOLDER: where the engine keeps what it makes of the model, and finds what a process before it kept there. Prints a line
of JSON when it is loaded, and one for each line that it reads: a number of runs to time, or "clones" and seconds, for
which one Python thread runs the model and then two do, each with a model of its own. Ends with its input.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

THREADS, CPUS, KEPT = sys.argv[3], sys.argv[4], sys.argv[5:]
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = THREADS


def peak_mib() -> float:
    """Largest resident size of this process; getrusage alone would count that of the process that started it, too."""
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _summary(values: Any) -> dict[str, Any]:
    """Some elements of an output, and the largest of all."""
    return {"sample": values[:: max(1, values.size // 64)].tolist(), "largest": float(abs(values).max(initial=0.0))}


def throughput(runs: list[Callable[[], Any]], seconds: float) -> float:
    """Runs a second of Python threads at the same time, one for each of `runs`."""
    counts, until = [0] * len(runs), float("inf")
    ready = threading.Barrier(len(runs) + 1)

    def work(i: int) -> None:
        runs[i]()
        ready.wait()
        while time.perf_counter() < until:
            runs[i]()
            counts[i] += 1

    threads = [threading.Thread(target=work, args=[i]) for i in range(len(runs))]
    for thread in threads:
        thread.start()
    ready.wait()
    begin = time.perf_counter()
    until = begin + seconds
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - begin)


def main() -> int:
    """Load, report, then time on request."""
    import numpy as np
    from engines import ENGINES
    from workloads import workload

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(CPUS)])
    # Engines print what they like elsewhere, those in C++ as well.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    run = ENGINES[sys.argv[1]](replace(workload(sys.argv[2]), kept=Path(*KEPT) if KEPT else None), int(THREADS))
    outputs = run()
    summary = [_summary(np.asarray(o, np.float64).reshape(-1)) for o in outputs]
    print(json.dumps({"outputs": summary, "peak_mib": peak_mib()}), file=answers, flush=True)
    for line in sys.stdin:
        if line.startswith("clones"):
            runs = [run, ENGINES[sys.argv[1]](workload(sys.argv[2]), int(THREADS))]
            seconds = float(line.split()[1])
            rates = {"alone": throughput(runs[:1], seconds), "together": throughput(runs, seconds)}
            print(json.dumps(rates | {"peak_mib": peak_mib()}), file=answers, flush=True)
            continue
        times = []
        for _ in range(int(line)):
            begin = time.perf_counter()
            run()
            times.append(time.perf_counter() - begin)
        print(json.dumps({"times": times, "peak_mib": peak_mib()}), file=answers, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
