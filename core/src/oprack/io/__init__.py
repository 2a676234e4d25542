"""Files: parameter streams and inference models, as Paddle 1.6 to 2.6 writes them, and checkpoints of training.

Data for training, too: Dataset, DataLoader, samplers, and `lod_collate` for batches of sequences without padding.

Names are imported on first use: who loads a model needs no checkpoints, and protobuf only for programs on the wire.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oprack.io.checkpoint import Checkpoint, latest_checkpoint, load_checkpoint, save_checkpoint
    from oprack.io.data_loader import DataLoader, default_collate, lod_collate
    from oprack.io.dataset import (
        BatchSampler,
        ConcatDataset,
        Dataset,
        IterableDataset,
        RandomSampler,
        Sampler,
        SequenceSampler,
        Subset,
        TensorDataset,
        WeightedRandomSampler,
        random_split,
    )
    from oprack.io.export import inference_program, save_inference_model
    from oprack.io.inference_model import InferenceModel, load_from_buffers, load_inference_model
    from oprack.io.parameters import load_vars, persistable_vars, save_vars
    from oprack.io.state import load, load_state, save, save_state
    from oprack.io.workers import WorkerInfo, get_worker_info

_HOMES = {
    "BatchSampler": "dataset",
    "Checkpoint": "checkpoint",
    "ConcatDataset": "dataset",
    "DataLoader": "data_loader",
    "Dataset": "dataset",
    "InferenceModel": "inference_model",
    "IterableDataset": "dataset",
    "RandomSampler": "dataset",
    "Sampler": "dataset",
    "SequenceSampler": "dataset",
    "Subset": "dataset",
    "TensorDataset": "dataset",
    "WeightedRandomSampler": "dataset",
    "WorkerInfo": "workers",
    "default_collate": "data_loader",
    "get_worker_info": "workers",
    "inference_program": "export",
    "latest_checkpoint": "checkpoint",
    "load": "state",
    "load_checkpoint": "checkpoint",
    "load_from_buffers": "inference_model",
    "load_inference_model": "inference_model",
    "load_state": "state",
    "load_vars": "parameters",
    "lod_collate": "data_loader",
    "persistable_vars": "parameters",
    "random_split": "dataset",
    "save": "state",
    "save_checkpoint": "checkpoint",
    "save_inference_model": "export",
    "save_state": "state",
    "save_vars": "parameters",
}
__all__ = [
    "BatchSampler",
    "Checkpoint",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "InferenceModel",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequenceSampler",
    "Subset",
    "TensorDataset",
    "WeightedRandomSampler",
    "WorkerInfo",
    "default_collate",
    "get_worker_info",
    "inference_program",
    "latest_checkpoint",
    "load",
    "load_checkpoint",
    "load_from_buffers",
    "load_inference_model",
    "load_state",
    "load_vars",
    "lod_collate",
    "persistable_vars",
    "random_split",
    "save",
    "save_checkpoint",
    "save_inference_model",
    "save_state",
    "save_vars",
]


def __getattr__(name: str) -> Any:
    import importlib

    if name not in _HOMES:
        raise AttributeError(f"module 'oprack.io' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f"oprack.io.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
