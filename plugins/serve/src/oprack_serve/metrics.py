"""Metrics for Prometheus: of requests, batches, queues and workers. Labels are names of models that are served."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

if TYPE_CHECKING:
    from oprack_serve.log import JsonLog
    from oprack_serve.models import Models

STAGES = ("read", "decode", "queue", "run", "encode", "write")
_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_SIZES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)


class Histogram:
    """Counts of what was observed, by bounds. Those of prometheus_client take a lock and five times as long, for six
    stages of each request.
    """

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def add(self, counts: list[int], total: float) -> None:
        """Add what another of the same bounds has counted."""
        self._counts = [a + b for a, b in zip(self._counts, counts, strict=True)]
        self._sum += total

    def to_json(self) -> tuple[list[int], float]:
        """What `add` takes."""
        return self._counts, self._sum

    def observe(self, value: float) -> None:
        """Count a value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def observe_all(self, values: np.ndarray) -> None:
        """Count values, [N]: a thousand of them take as long as forty by themselves."""
        counts = np.bincount(np.searchsorted(self._bounds, values), minlength=len(self._counts))
        self.add(counts.tolist(), float(values.sum()))

    def samples(self) -> tuple[list[tuple[str, float]], float]:
        """Bound and cumulated count of each bucket, and the sum, as Prometheus has them."""
        names = [*map(str, self._bounds), "+Inf"]
        return list(zip(names, map(float, accumulate(self._counts)), strict=True)), self._sum


MAX_SIZES = 256
MOST_APART = 1024
"""Requests that were answered well and are not in the histograms yet."""


@dataclass
class Duration:
    """How often something was done, and the seconds it took in all."""

    count: int = 0
    seconds: float = 0.0

    def add(self, seconds: float) -> None:
        """Count it once more."""
        self.count += 1  # for each stage of each request: no call more than it takes
        self.seconds += seconds

    def add_all(self, count: int, seconds: float) -> None:
        """Count what took so long all together."""
        self.count += count
        self.seconds += seconds


class ModelMetrics:
    """What is counted of one version of a model.

    Attributes:
        success, fail: Requests that were answered well, and others, from their first byte to their last.
        success_stages: Stages of those that were answered well.
        batches: Runs by their entries; sizes beyond MAX_SIZES of them count with the next smaller one.
        entries: Of all runs.
        last_ms: When the latest request was answered well, in milliseconds since 1970.
    """

    def __init__(self) -> None:
        self.statuses: Counter[int] = Counter()
        self.stages = {stage: Histogram(_SECONDS) for stage in STAGES}
        self.batch_requests, self.batch_entries = Histogram(_SIZES), Histogram(_SIZES)
        self.batch_seconds = Histogram(_SECONDS)
        self.success, self.fail = Duration(), Duration()
        self.success_stages = {stage: Duration() for stage in STAGES}
        self.batches: dict[int, Duration] = {}
        self.entries = self.last_ms = 0
        self._good: list[np.ndarray] = []

    def count_good(self, spent: np.ndarray) -> None:
        """Count requests that were answered well, [requests, 7]: seconds of each of STAGES, and at last of all."""
        self._good.append(spent)
        if sum(map(len, self._good)) >= MOST_APART:
            self.gather()

    def gather(self) -> None:
        """Count what `count_good` was told, before anybody reads."""
        if not self._good:
            return
        spent, self._good = np.concatenate(self._good), []
        self.statuses[200] += len(spent)
        for stage, seconds in zip(STAGES, spent.T, strict=False):
            self.stages[stage].observe_all(seconds)
            self.success_stages[stage].add_all(len(spent), float(seconds.sum()))
        self.success.add_all(len(spent), float(spent[:, -1].sum()))

    def count_failed(self, status: int, seconds: float, stages: dict[str, float]) -> None:
        """Count a request that was not, with the seconds of those stages that it had."""
        self.statuses[status] += 1
        for stage, spent in stages.items():
            self.stages[stage].observe(spent)
        self.fail.add(seconds)

    def count_batch(self, requests: int, entries: int, seconds: float) -> None:
        """Count a run."""
        self.batch_requests.observe(requests)
        self.batch_entries.observe(entries)
        self.batch_seconds.observe(seconds)
        self.entries += entries
        if entries not in self.batches and len(self.batches) >= MAX_SIZES:
            entries = max((size for size in self.batches if size < entries), default=min(self.batches))
        self.batches.setdefault(entries, Duration()).add(seconds)

    def durations(self) -> dict[str, Duration]:
        """Those that are not of batches, by name."""
        return {"success": self.success, "fail": self.fail} | self.success_stages

    def histograms(self) -> dict[str, Histogram]:
        """All of them, by name."""
        batches = {"requests": self.batch_requests, "entries": self.batch_entries, "seconds": self.batch_seconds}
        return self.stages | {f"batch {name}": histogram for name, histogram in batches.items()}


class Metrics:
    """The metrics of one server, in a registry of its own."""

    def __init__(self, models: Models, log: JsonLog) -> None:
        self.registry = CollectorRegistry()
        self._by_model: dict[tuple[str, str], ModelMetrics] = {}
        self.before_reading: Callable[[], None] = lambda: None
        self._models = models
        self.registry.register(_Counted(self.total))
        self.registry.register(_State(models, log))

    @property
    def by_model(self) -> dict[tuple[str, str], ModelMetrics]:
        """What this process has counted, by names and versions."""
        self.before_reading()
        for counted in self._by_model.values():
            counted.gather()
        return self._by_model

    def of(self, name: str, version: str) -> ModelMetrics:
        """Those of a model, which go on when another takes its place; "" and "" for requests that found none."""
        found = self._by_model.get((name, version))
        if found is None:
            found = self._by_model[name, version] = ModelMetrics()
        return found

    def total(self) -> dict[tuple[str, str], ModelMetrics]:
        """What this process has counted, with all other fronts."""
        return self.by_model if self._models.fronts is None else self._models.fronts.total(self.by_model)

    def text(self) -> bytes:
        """What `/metrics` answers."""
        return generate_latest(self.registry)


class _Counted:
    """What was counted, in the families of Prometheus."""

    def __init__(self, by_model: Callable[[], dict[tuple[str, str], ModelMetrics]]) -> None:
        self._by_model = by_model

    def describe(self) -> Iterable[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        labels = ["model", "version"]
        requests = CounterMetricFamily("oprack_requests", "Requests by status of HTTP", labels=[*labels, "status"])
        stages = HistogramMetricFamily("oprack_stage_seconds", "Time of a request by stage", labels=[*labels, "stage"])
        in_batch = HistogramMetricFamily("oprack_batch_requests", "Requests in a batch", labels=labels)
        entries = HistogramMetricFamily("oprack_batch_entries", "Rows or sequences in a batch", labels=labels)
        seconds = HistogramMetricFamily("oprack_batch_seconds", "Time of a batch in its worker", labels=labels)
        for key, counted in self._by_model().items():
            for status, count in counted.statuses.items():
                requests.add_metric([*key, str(status)], count)
            for stage, histogram in counted.stages.items():
                stages.add_metric([*key, stage], *histogram.samples())
            in_batch.add_metric(key, *counted.batch_requests.samples())
            entries.add_metric(key, *counted.batch_entries.samples())
            seconds.add_metric(key, *counted.batch_seconds.samples())
        yield from (requests, stages, in_batch, entries, seconds)


class _State:
    """What is read from the models when it is asked for."""

    def __init__(self, models: Models, log: JsonLog) -> None:
        self._models, self._log = models, log

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
        dropped = CounterMetricFamily("oprack_log_dropped", "Lines of the log that its reader did not take in time")
        fronts = self._models.fronts
        dropped.add_metric([], self._log.lost + (fronts.lost_lines if fronts else 0))
        answering = GaugeMetricFamily("oprack_fronts", "Processes that take requests")
        answering.add_metric([], fronts.count if fronts else 1)
        ended = CounterMetricFamily("oprack_front_restarts", "Processes that took requests, ended and were replaced")
        ended.add_metric([], fronts.restarts if fronts else 0)
        for (name, version), model in self._models.serving.items():
            key = [name, version]
            elsewhere = fronts.lane((name, version)) if fronts else (0, 0)
            queue.add_metric(key, model.lane.waiting + elsewhere[0])
            running.add_metric(key, model.lane.running + elsewhere[1])
            idle.add_metric(key, len(model.lane.idle))
            restarts.add_metric(key, model.restarts)
        for row in self._models.index():
            state.add_metric([row["name"], row["version"]], float(row["state"] == "READY"))
        for name, count in self._models.reloads.items():
            reloads.add_metric([name], count)
        yield from (queue, running, idle, restarts, state, reloads, dropped, answering, ended)
