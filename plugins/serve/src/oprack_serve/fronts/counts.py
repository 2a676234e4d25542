"""What a front has counted, as it tells the server, whose metrics are those of all fronts together."""

from __future__ import annotations

from typing import Any

from oprack_serve.metrics import ModelMetrics


def to_json(counted: ModelMetrics) -> dict[str, Any]:
    """For the server."""
    histograms = {name: histogram.to_json() for name, histogram in counted.histograms().items()}
    return {"statuses": dict(counted.statuses), "histograms": histograms}


def add(total: ModelMetrics, row: dict[str, Any]) -> None:
    """Add what a front told."""
    for status, count in row["statuses"].items():
        total.statuses[int(status)] += count
    for name, histogram in total.histograms().items():
        histogram.add(*row["histograms"][name])
