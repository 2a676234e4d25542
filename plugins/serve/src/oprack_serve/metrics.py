"""Metrics for Prometheus: of requests, batches, queues and workers. Labels are names of models that are served."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

if TYPE_CHECKING:
    from oprack_serve.models import Models

STAGES = ("read", "decode", "queue", "run", "encode", "write")
_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """The metrics of one server, in a registry of its own."""

    def __init__(self, models: Models) -> None:
        self.registry = CollectorRegistry()
        labels = ["model", "version"]
        self.requests = Counter(
            "oprack_requests", "Requests by status of HTTP", [*labels, "status"], registry=self.registry
        )
        self.stages = Histogram(
            "oprack_stage_seconds",
            "Time of a request by stage",
            [*labels, "stage"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.batch_requests = Histogram(
            "oprack_batch_requests", "Requests in a batch", labels, buckets=_SIZES, registry=self.registry
        )
        self.batch_entries = Histogram(
            "oprack_batch_entries", "Rows or sequences in a batch", labels, buckets=_SIZES, registry=self.registry
        )
        self.batch_seconds = Histogram(
            "oprack_batch_seconds", "Time of a batch in its worker", labels, buckets=_SECONDS, registry=self.registry
        )
        self.registry.register(_State(models))

        # finding a metric by its labels takes longer than counting it
        self._requests: dict[tuple[str, str, int], Counter] = {}
        self._stages: dict[tuple[str, str, str], Histogram] = {}

    def request(self, labels: tuple[str, str], status: int) -> None:
        """Count a request by its status."""
        key = (*labels, status)
        if key not in self._requests:
            self._requests[key] = self.requests.labels(*labels, str(status))
        self._requests[key].inc()

    def stage(self, labels: tuple[str, str], stage: str, seconds: float) -> None:
        """Count the seconds that a request spent in a stage."""
        key = (*labels, stage)
        if key not in self._stages:
            self._stages[key] = self.stages.labels(*labels, stage)
        self._stages[key].observe(seconds)

    def text(self) -> bytes:
        """What `/metrics` answers."""
        return generate_latest(self.registry)


class _State:
    """What is read from the models when it is asked for."""

    def __init__(self, models: Models) -> None:
        self._models = models

    def describe(self) -> Iterable[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        labels = ["model", "version"]
        queue = GaugeMetricFamily("oprack_queue_length", "Requests that wait", labels=labels)
        running = GaugeMetricFamily("oprack_batches_running", "Batches that run", labels=labels)
        idle = GaugeMetricFamily("oprack_workers_idle", "Workers that wait for a batch", labels=labels)
        restarts = CounterMetricFamily("oprack_worker_restarts", "Workers that ended and were replaced", labels=labels)
        state = GaugeMetricFamily("oprack_model_ready", "1 for a model that serves, else 0", labels=labels)
        reloads = CounterMetricFamily("oprack_model_reloads", "Changed models that were taken", labels=["model"])
        for (name, version), model in self._models.serving.items():
            key = [name, version]
            queue.add_metric(key, model.lane.waiting)
            running.add_metric(key, model.lane.running)
            idle.add_metric(key, len(model.lane.idle))
            restarts.add_metric(key, model.restarts)
        for row in self._models.index():
            state.add_metric([row["name"], row["version"]], float(row["state"] == "READY"))
        for name, count in self._models.reloads.items():
            reloads.add_metric([name], count)
        yield from (queue, running, idle, restarts, state, reloads)
