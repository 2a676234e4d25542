"""Files: parameter streams and inference models, as Paddle 1.6 to 2.6 writes them, and checkpoints of training."""

from __future__ import annotations

from oprack.io.checkpoint import Checkpoint, latest_checkpoint, load_checkpoint, save_checkpoint
from oprack.io.export import inference_program, save_inference_model
from oprack.io.inference_model import InferenceModel, load_from_buffers, load_inference_model
from oprack.io.parameters import load_vars, persistable_vars, save_vars
from oprack.io.state import load_state, save_state

__all__ = [
    "Checkpoint",
    "InferenceModel",
    "inference_program",
    "latest_checkpoint",
    "load_checkpoint",
    "load_from_buffers",
    "load_inference_model",
    "load_state",
    "load_vars",
    "persistable_vars",
    "save_checkpoint",
    "save_inference_model",
    "save_state",
    "save_vars",
]
