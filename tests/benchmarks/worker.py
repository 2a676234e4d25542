"""One engine on one workload in a process of its own: waits for its turn on standard input.

    python worker.py ENGINE WORKLOAD THREADS

Prints a line of JSON when it is loaded, and one for each number of runs that it reads; ends with its input.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from typing import Any

THREADS = sys.argv[3]
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


def main() -> int:
    """Load, report, then time on request."""
    import numpy as np
    from engines import ENGINES
    from workloads import workload

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(THREADS)])
    answers, sys.stdout = sys.stdout, sys.stderr  # engines print what they like, elsewhere
    run = ENGINES[sys.argv[1]](workload(sys.argv[2]), int(THREADS))
    outputs = run()
    summary = [_summary(np.asarray(o, np.float64).reshape(-1)) for o in outputs]
    print(json.dumps({"outputs": summary, "peak_mib": peak_mib()}), file=answers, flush=True)
    for line in sys.stdin:
        times = []
        for _ in range(int(line)):
            begin = time.perf_counter()
            run()
            times.append(time.perf_counter() - begin)
        print(json.dumps({"times": times, "peak_mib": peak_mib()}), file=answers, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
