"""Profiler: measures where a run spends its time; it makes ops run one by one, as `oprack.reference` does."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

from oprack.kernel.kernel_map import switched_on

STEPS = ("choose_kernel", "prepare_data", "infer_shape", "compute", "write_back", "checks")
"""Steps of OperatorWithKernel.run, in order; each is an event within the op's own."""


class Profiler:
    """Collects events while it is active: `with oprack.Profiler() as p: exe.run(...)`, then `p.table()`.

    It sees the ops of programs and of eager calls alike, those of backward and of optimizers included.

    An event is (name, category, start, end, thread or name of another lane), times as time.perf_counter_ns has them.
    """

    def __init__(self) -> None:
        self.events: list[tuple[str, str, int, int, int | str]] = []
        self._watching: list[ExitStack] = []

    def __enter__(self) -> Profiler:
        PROFILERS.stack.append(self)
        self._watching.append(ExitStack())
        for watch in _WATCHES:
            self._watching[-1].enter_context(watch())
        return self

    def __exit__(self, *_: object) -> None:
        PROFILERS.stack.remove(self)
        self._watching.pop().close()

    def add(self, name: str, category: str, start: int) -> int:
        """Record an event that ends now; returns now."""
        now = time.perf_counter_ns()
        self.events.append((name, category, start, now, threading.get_ident()))
        return now

    @contextmanager
    def event(self, name: str, category: str = "user") -> Iterator[None]:
        """Record what runs inside as one event."""
        start = time.perf_counter_ns()
        try:
            yield
        finally:
            self.add(name, category, start)

    def by_op(self) -> list[dict[str, Any]]:
        """Calls, total, mean and maximum milliseconds and share of the whole for each op type, slowest first.

        The time of an op that runs a sub-block (while) includes the ops inside, so shares may add up to more than one.
        """
        rows: dict[str, list[float]] = {}
        for name, category, start, end, _ in self.events:
            if category == "op":
                rows.setdefault(name, []).append((end - start) / 1e6)
        whole = self._outer_ms() or 1.0
        table = list[dict[str, Any]]()
        for name, times in rows.items():
            row = {"op": name, "calls": len(times), "total_ms": sum(times), "mean_ms": sum(times) / len(times)}
            table.append(row | {"max_ms": max(times), "share": sum(times) / whole})
        return sorted(table, key=lambda row: -float(row["total_ms"]))

    def _outer_ms(self) -> float:
        """Total time of the outermost ops: those that ran inside another op are part of its time."""
        total = 0
        until: dict[int | str, int] = {}
        # Sorted by start, the longer first, so that an op comes before those inside it.
        for _, _, start, end, thread in sorted((e for e in self.events if e[1] == "op"), key=lambda e: (e[2], -e[3])):
            if end > until.get(thread, -1):
                total += end - start
                until[thread] = end
        return total / 1e6

    def table(self, limit: int | None = None) -> str:
        """`by_op` as text."""
        lines = [f"{'op':<28}{'calls':>7}{'total ms':>12}{'mean ms':>11}{'max ms':>11}{'share':>8}"]
        lines += [
            f"{r['op']:<28}{r['calls']:>7}{r['total_ms']:>12.3f}{r['mean_ms']:>11.3f}{r['max_ms']:>11.3f}{r['share']:>7.1%}"
            for r in self.by_op()[:limit]
        ]
        return "\n".join(lines)

    def chrome_trace(self, path: str | Path | None = None) -> dict[str, Any]:
        """The events in Chrome's trace format, which Perfetto and chrome://tracing open; also written to `path`."""
        origin = min((start for _, _, start, _, _ in self.events), default=0)
        # Perfetto reads thread ids as 32 bits, and Python's are longer, so threads are numbered.
        threads = {ident: i for i, ident in enumerate(dict.fromkeys(e[4] for e in self.events), 1)}
        events: list[dict[str, Any]] = [{"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "oprack"}}]
        for thread, i in threads.items():
            name = thread if isinstance(thread, str) else f"thread {i}"
            events.append({"name": "thread_name", "ph": "M", "pid": 1, "tid": i, "args": {"name": name}})
        for name, category, start, end, thread in self.events:
            times = {"ts": (start - origin) / 1000, "dur": (end - start) / 1000}
            events.append({"name": name, "cat": category, "ph": "X", **times, "pid": 1, "tid": threads[thread]})
        trace = {"displayTimeUnit": "ms", "traceEvents": events}
        if path is not None:
            Path(path).write_text(json.dumps(trace))
        return trace


# Per thread: a profiler must not record the runs of other threads.
class _Profilers(threading.local):
    def __init__(self) -> None:
        self.stack: list[Profiler | None] = [None] if switched_on("OPRACK_REFERENCE") else []


PROFILERS = _Profilers()
"""`PROFILERS.stack` has what makes the ops of this thread run one by one: profilers that are active, the innermost one
last, and before them None for OPRACK_REFERENCE and each block of `oprack.reference()`."""


def in_reference() -> bool:
    """Whether ops of this thread run by plain kernels, one by one: OPRACK_REFERENCE, or inside `oprack.reference()`."""
    return None in PROFILERS.stack


_WATCHES: list[Callable[[], AbstractContextManager[Any]]] = []


def watch(make: Callable[[], AbstractContextManager[Any]]) -> None:
    """Enter the context manager `make()` while a profiler is active; how ops outside of executors are recorded."""
    _WATCHES.append(make)
    for profiler in filter(None, PROFILERS.stack):
        profiler._watching[-1].enter_context(make())


def current_profiler() -> Profiler | None:
    """The innermost active profiler of this thread.

    Returns:
        The profiler; None when there is none.
    """
    stack = PROFILERS.stack
    return stack[-1] if stack else None
