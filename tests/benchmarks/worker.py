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

THREADS = sys.argv[3]
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = THREADS


def main() -> int:
    """Load, report, then time on request."""
    start = time.perf_counter()
    import numpy as np
    from engines import ENGINES
    from workloads import workloads

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(THREADS)])
    workload = next(w for w in workloads() if w.name == sys.argv[2])
    answers, sys.stdout = sys.stdout, sys.stderr  # engines print what they like, elsewhere
    run = ENGINES[sys.argv[1]](workload, int(THREADS))
    outputs = run()
    first = time.perf_counter() - start
    summary = [
        {"shape": list(o.shape), "sample": np.asarray(o, np.float64).reshape(-1)[:: max(1, o.size // 64)].tolist()}
        for o in outputs
    ]
    print(json.dumps({"start_up": first, "outputs": summary}), file=answers, flush=True)
    for line in sys.stdin:
        times = []
        for _ in range(int(line)):
            begin = time.perf_counter()
            run()
            times.append(time.perf_counter() - begin)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps({"times": times, "peak_mib": peak}), file=answers, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
