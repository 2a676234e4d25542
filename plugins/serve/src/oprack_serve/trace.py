"""The trace of one request: its way through the server and the ops of its run, in Chrome's format."""

from __future__ import annotations

from typing import Any

from oprack_serve.jobs import Job


def chrome_trace(stages: dict[str, tuple[float, float]], job: Job) -> dict[str, Any]:
    """Stages (start and end in seconds of one clock) on one line, ops on another; Perfetto opens it."""
    origin = min((start for start, _ in stages.values()), default=0.0)

    def event(name: str, category: str, start: float, length: float, thread: int) -> dict[str, Any]:
        return {"name": name, "cat": category, "ph": "X", "ts": start, "dur": length, "pid": 1, "tid": thread}

    number, requests, entries = job.batch
    events: list[dict[str, Any]] = [
        {"name": "thread_name", "ph": "M", "pid": 1, "tid": 1, "args": {"name": "server"}},
        {"name": "thread_name", "ph": "M", "pid": 1, "tid": 2, "args": {"name": "worker"}},
    ]
    for name, (start, end) in stages.items():
        events.append(event(name, "stage", (start - origin) * 1e6, (end - start) * 1e6, 1))
    run = stages.get("run", (origin, origin))[0]
    for name, category, start, length in job.events or ():
        events.append(event(name, category, (run - origin) * 1e6 + start, length, 2))
    batch = {"number": number, "requests": requests, "entries": entries}
    return {"displayTimeUnit": "ms", "traceEvents": events, "otherData": {"batch": batch}}
