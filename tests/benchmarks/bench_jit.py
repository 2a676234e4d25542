"""Times jit beside eager calls: the parts of the fuzzer's nets, alone and several in a row.

    python tests/benchmarks/bench_jit.py [--rounds 30] [--nets 20] [--kinds Affine,Squashed]

Microseconds of CPU time per call on one thread, the least of all rounds in turns, and the median of the rounds' ratios:
without gradients, and with a backward pass to input and parameters. A ratio above 1 means that jit is slower.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import oprack
from oprack.packs.manager import default_manager
from oprack.testing.fuzz.lives.subjects import FUZZ_LIVES, WIDTH, Jitted, Net

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
_CALLS = 100
_ROWS = 4


def nets(count: int, kinds: Sequence[str]) -> list[list[str]]:
    """Every part alone, and rows of two to five of them."""
    random.seed(0)
    alone = [[kind] for kind in kinds]
    return alone + [[random.choice(kinds) for _ in range(random.randint(2, 5))] for _ in range(count)]


def measure(eager: Callable[[], Any], jit: Callable[[], Any], rounds: int) -> tuple[float, float, float]:
    """(microseconds of eager calls, those of jit, the least of the rounds; median of the ratios of rounds)."""
    taken: list[list[float]] = [[], []]
    for call in (eager, jit):
        for _ in range(5):
            call()
    for _ in range(rounds):
        for call, times in zip((eager, jit), taken, strict=True):
            start = time.thread_time()
            for _ in range(_CALLS):
                call()
            times.append((time.thread_time() - start) / _CALLS * 1e6)
    ratios = [b / a for a, b in zip(*taken, strict=True)]
    return min(taken[0]), min(taken[1]), statistics.median(ratios)


def compared(kinds: Sequence[str], rounds: int) -> list[tuple[float, float, float]]:
    """What `measure` gives without gradients, and with those of input and parameters."""
    net = Net(kinds, "float32")
    x = oprack.to_tensor(np.random.default_rng(0).uniform(-1, 1, (_ROWS, WIDTH)).astype(np.float32))
    jitted = oprack.jit(net)
    with oprack.no_grad():
        rows = [measure(lambda: net(x), lambda: jitted(x), rounds)]
    x.requires_grad = True
    ones = oprack.to_tensor(np.ones(net(x).shape, np.float32))

    def step(function: Callable[..., Any]) -> None:
        x.clear_grad()
        function(x).backward(ones)

    rows.append(measure(lambda: step(net), lambda: step(jitted), rounds))
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--nets", type=int, default=20)
    parser.add_argument("--kinds", help="a net of these parts alone, separated by commas")
    options = parser.parse_args()
    if os.environ.get("OMP_NUM_THREADS") != "1":  # libraries read it when they are loaded
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | ONE_THREAD)
    warnings.simplefilter("ignore")
    parts = [kind for kind in default_manager().layer_names(FUZZ_LIVES) if Jitted.takes(kind)]
    chosen = [options.kinds.split(",")] if options.kinds else nets(options.nets, parts)
    print(f"{'microseconds':60s}{'eager':>8s}{'jit':>8s}{'ratio':>8s}{'median':>8s}")
    slower = []
    for kinds in chosen:
        try:
            rows = compared(kinds, options.rounds)
        except oprack.errors.OprackError as error:
            print(f"{' '.join(kinds):60s}{type(error).__name__:>24s}")
            continue
        for what, (eager, jit, median) in zip(("", ", backward"), rows, strict=False):
            label = " ".join(kinds) + what
            print(f"{label:60s}{eager:8.1f}{jit:8.1f}{jit / eager:8.2f}{median:8.2f}", flush=True)
            slower += [f"{label} {jit / eager:.2f}"] * (jit > eager)
    print(f"{len(slower)} slower by jit" + "".join(f"\n  {s}" for s in slower))
    return 0


if __name__ == "__main__":
    sys.exit(main())
