"""The statistics extension: requests and batches of each model since the server was started, and the time they took."""

from __future__ import annotations

from typing import Any

from oprack_serve.metrics import Duration, Metrics, ModelMetrics
from oprack_serve.models import Models

PARTS = {"queue": "queue", "compute_input": "decode", "compute_infer": "run", "compute_output": "encode"}
"""What the protocol calls a part of a request, and the stage that it is here."""


def statistics(models: Models, metrics: Metrics, name: str, version: str | None) -> dict[str, Any]:
    """Those of a model, of one version or of all, or of all models where the name is "". Raises RequestError."""
    if name:
        found = models.find(name, version)
        keys = [(name, v) for v in models.versions(name)] if version is None else [(found.name, found.version)]
    else:
        keys = sorted(models.serving, key=lambda key: (key[0], int(key[1])))
    total = metrics.total()
    return {"model_stats": [_of_model(total.get(key) or ModelMetrics(), *key) for key in keys]}


def _of_model(counted: ModelMetrics, name: str, version: str) -> dict[str, Any]:
    spent = {"success": counted.success, "fail": counted.fail}
    spent |= {part: counted.success_stages[stage] for part, stage in PARTS.items()}
    batches = sorted(counted.batches.items())
    return {
        "name": name,
        "version": version,
        "last_inference": counted.last_ms,
        "inference_count": counted.entries,
        "execution_count": sum(duration.count for _, duration in batches),
        "inference_stats": {part: _row(duration) for part, duration in spent.items()},
        # a batch is packed and split in a hundredth of its time, which is not measured apart
        "batch_stats": [
            {
                "batch_size": size,
                "compute_input": _row(Duration(duration.count)),
                "compute_infer": _row(duration),
                "compute_output": _row(Duration(duration.count)),
            }
            for size, duration in batches
        ],
        "memory_usage": [],
    }


def _row(duration: Duration) -> dict[str, int]:
    return {"count": duration.count, "ns": round(duration.seconds * 1e9)}
