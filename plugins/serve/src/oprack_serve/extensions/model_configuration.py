"""The model configuration extension: a model as Triton's `config.pbtxt` would have it, by which its tools know it."""

from __future__ import annotations

import json
from typing import Any

from oprack_serve.model import Model
from oprack_serve.signature import Signature

_TYPES = {"BYTES": "TYPE_STRING", "": "TYPE_INVALID"}


def model_configuration(model: Model) -> dict[str, Any]:
    """The configuration of a model.

    Where all inputs and outputs of a model that joins requests have the batch as their first dim, `max_batch_size` is
    its largest batch and dims have no batch, as Triton has it; else it is 0, and dims are whole.
    """
    rows = {
        kind: [row for spec in specs for row in spec.described()]
        for kind, specs in (("input", model.signature.inputs), ("output", model.signature.outputs))
    }
    batched = model.lane.rule.joins and _has_a_batch(model.signature)
    found: dict[str, Any] = {
        "name": model.name,
        "platform": "oprack",
        "backend": "oprack",
        "version_policy": _version_policy(model.options.versions),
        "max_batch_size": model.lane.max_batch if batched else 0,
    }
    for kind, tensors in rows.items():
        found[kind] = [
            {
                "name": row["name"],
                "data_type": _TYPES.get(row["datatype"], f"TYPE_{row['datatype']}"),
                "dims": row["shape"][1 if batched else 0 :],
                **({"format": _format(row["shape"])} if kind == "input" else {}),
            }
            for row in tensors
        ]
    found["instance_group"] = [{"name": model.name, "kind": "KIND_CPU", "count": model.worker_count}]
    if model.lane.rule.joins:
        found["dynamic_batching"] = {"max_queue_delay_microseconds": round(model.lane.max_delay * 1e6)}
    found["model_transaction_policy"] = {"decoupled": False}
    said = {"batching": model.lane.rule.described(), "max_queue": model.lane.max_queue} | model.options.of_predictor()
    found["parameters"] = {
        key: {"string_value": value if isinstance(value, str) else json.dumps(value)} for key, value in said.items()
    }
    return found


def _format(shape: list[int]) -> str:
    """Where the channels of a batch of pictures are; clients prepare pictures by it."""
    for name, channels in ("FORMAT_NCHW", 1), ("FORMAT_NHWC", 3):
        if len(shape) == 4 and shape[channels] in (1, 3):
            return name
    return "FORMAT_NONE"


def _version_policy(versions: int | tuple[str, ...] | None) -> dict[str, Any]:
    if versions is None:
        return {"all": {}}
    if isinstance(versions, int):
        return {"latest": {"num_versions": versions}}
    return {"specific": {"versions": list(map(int, versions))}}


def _has_a_batch(signature: Signature) -> bool:
    specs = (*signature.inputs, *signature.outputs)
    return all(spec.shape and spec.shape[0] == -1 and not spec.lod_level for spec in specs)
