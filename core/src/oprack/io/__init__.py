"""Files: parameter streams and inference models, as Paddle 1.6 to 2.6 writes them.

The distribution of eager calls brings three things more: the state of modules and optimizers in one file, checkpoints
from which training resumes, and data for training, that is Dataset, DataLoader, samplers, and `lod_collate` for batches
of sequences without padding.

Names are imported on first use: who loads a model needs no checkpoints, and protobuf only for programs on the wire.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oprack.checkpoint import Checkpoint, latest_checkpoint, load_checkpoint, save_checkpoint
    from oprack.checkpoint.state import load, load_state, save, save_state
    from oprack.data.data_loader import DataLoader, default_collate, lod_collate
    from oprack.data.dataset import (
        BatchSampler,
        ConcatDataset,
        Dataset,
        IterableDataset,
        RandomSampler,
        Sampler,
        SequenceSampler,
        Subset,
        TensorDataset,
        TokenBatchSampler,
        WeightedRandomSampler,
        random_split,
    )
    from oprack.data.workers import WorkerInfo, get_worker_info
    from oprack.io.export import inference_program, save_inference_model
    from oprack.io.inference_model import InferenceModel, load_from_buffers, load_inference_model
    from oprack.io.parameters import load_vars, persistable_vars, save_vars

_HOMES = {
    "BatchSampler": "data.dataset",
    "Checkpoint": "checkpoint",
    "ConcatDataset": "data.dataset",
    "DataLoader": "data.data_loader",
    "Dataset": "data.dataset",
    "InferenceModel": "io.inference_model",
    "IterableDataset": "data.dataset",
    "RandomSampler": "data.dataset",
    "Sampler": "data.dataset",
    "SequenceSampler": "data.dataset",
    "Subset": "data.dataset",
    "TensorDataset": "data.dataset",
    "TokenBatchSampler": "data.dataset",
    "WeightedRandomSampler": "data.dataset",
    "WorkerInfo": "data.workers",
    "default_collate": "data.data_loader",
    "get_worker_info": "data.workers",
    "inference_program": "io.export",
    "latest_checkpoint": "checkpoint",
    "load": "checkpoint.state",
    "load_checkpoint": "checkpoint",
    "load_from_buffers": "io.inference_model",
    "load_inference_model": "io.inference_model",
    "load_state": "checkpoint.state",
    "load_vars": "io.parameters",
    "lod_collate": "data.data_loader",
    "persistable_vars": "io.parameters",
    "random_split": "data.dataset",
    "save": "checkpoint.state",
    "save_checkpoint": "checkpoint",
    "save_inference_model": "io.export",
    "save_state": "checkpoint.state",
    "save_vars": "io.parameters",
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
    "TokenBatchSampler",
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
    value = globals()[name] = getattr(importlib.import_module(f"oprack.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
