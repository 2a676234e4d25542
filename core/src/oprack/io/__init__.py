"""Files: parameter streams and inference models, as Paddle 1.6 to 2.6 writes them."""

from __future__ import annotations

from oprack.io.export import inference_program, save_inference_model
from oprack.io.inference_model import InferenceModel, load_from_buffers, load_inference_model
from oprack.io.parameters import load_vars, persistable_vars, save_vars

__all__ = [
    "InferenceModel",
    "inference_program",
    "load_from_buffers",
    "load_inference_model",
    "load_vars",
    "persistable_vars",
    "save_inference_model",
    "save_vars",
]
