"""What messages take between the ranks that run: the program that `oprack parallel bench` starts on each of them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from oprack.parallel.communicator import Communicator
from oprack.parallel.links import Links, fitted
from oprack.parallel.world import init

SIZES = (4, 1 << 10, 1 << 14, 1 << 18, 1 << 20, 1 << 22, 1 << 24)
_LONGEST = 0.3
"""Seconds for all calls with one size, about."""


def measured(world: Communicator) -> Iterator[tuple[int, float]]:
    """(bytes, seconds) of an all_reduce of float32 for each size: the median call of the slowest rank; collective."""
    for size in SIZES:
        x = np.ones(size // 4, np.float32)
        calls, first = 5, 0.0
        times: list[float] = []
        for round_ in range(2):  # the first one warms up, and says how many calls the second may have
            times = []
            for _ in range(calls):
                start = time.perf_counter()
                world.all_reduce(x)
                times.append(time.perf_counter() - start)
            first = float(np.median(times))
            if round_ == 0:
                slowest = float(world.all_reduce(np.array([first]), "max")[0])
                calls = int(min(200, max(5, _LONGEST / max(slowest, 1e-7))))
        yield size, float(world.all_reduce(np.array([first]), "max")[0])


def run(out: str, axis: str = "*") -> None:
    """Measure, print, and write the file that simulations and the choice of layouts read; collective.

    Args:
        out: The file; links of other axes in it are kept. "": none is written.
        axis: The axis of grids that such messages go along; "*" for all that have no link of their own.
    """
    world = init()
    tells = not world.rank and world.size > 1
    if tells:
        print(f"all_reduce of float32 on {world.size} ranks, engine {world.engine}: bytes, microseconds", flush=True)
    rows = []
    for size, seconds in measured(world):
        rows.append((size, seconds))
        if tells:  # as they are measured, so that one sees how far it is
            print(f"{size:>10} {seconds * 1e6:>12.1f}", flush=True)
    if not tells:
        return
    link = fitted("all_reduce", world.size, rows)
    print(f"latency {link.latency * 1e6:.1f} us, bandwidth {link.bandwidth / 1e9:.2f} GB/s a rank", flush=True)
    if out:
        old = Links.read(out) if Path(out).is_file() else Links()
        links = Links(old.axes, link) if axis == "*" else Links({**old.axes, axis: link}, old.other)
        Path(out).write_text(
            json.dumps({**links.facts(), "ranks": world.size, "engine": world.engine}, indent=1) + "\n"
        )
