"""What a front has counted, as it tells the server, whose metrics are those of all fronts together."""

from __future__ import annotations

from typing import Any

from oprack_serve.metrics import Duration, ModelMetrics


def to_json(counted: ModelMetrics) -> dict[str, Any]:
    """For the server."""
    histograms = {name: histogram.to_json() for name, histogram in counted.histograms().items()}
    durations = {name: [row.count, row.seconds] for name, row in counted.durations().items()}
    batches = [[size, row.count, row.seconds] for size, row in counted.batches.items()]
    found = {"statuses": dict(counted.statuses), "histograms": histograms, "durations": durations, "batches": batches}
    return found | {"entries": counted.entries, "last_ms": counted.last_ms}


def add(total: ModelMetrics, row: dict[str, Any]) -> None:
    """Add what a front told."""
    for status, count in row["statuses"].items():
        total.statuses[int(status)] += count
    for name, histogram in total.histograms().items():
        histogram.add(*row["histograms"][name])
    for name, duration in total.durations().items():
        duration.add_all(*row["durations"][name])
    for size, count, seconds in row["batches"]:
        total.batches.setdefault(size, Duration()).add_all(count, seconds)
    total.entries += row["entries"]
    total.last_ms = max(total.last_ms, row["last_ms"])
