"""paddle.inference's interface: Config, create_predictor, Predictor and their handles, on oprack's executor."""

from __future__ import annotations

from oprack.inference.as_paddle import as_paddle
from oprack.inference.config import Config
from oprack.inference.enums import DataType, PlaceType, PrecisionType, get_num_bytes_of_data_type
from oprack.inference.no_effect import NoEffectWarning
from oprack.inference.pass_builder import PassBuilder
from oprack.inference.predictor import Predictor, PredictorPool, create_predictor
from oprack.inference.tensor_handle import Tensor

PADDLE_VERSION = "2.6.2"
"""Version of Paddle whose interface and numbers this package follows."""


def get_version() -> str:
    """Versions of oprack and of the Paddle interface that it follows."""
    from importlib_metadata import version

    return f"version: {PADDLE_VERSION}\noprack: {version('oprack')}\n"


def get_trt_compile_version() -> tuple[int, int, int]:
    """(0, 0, 0): there is no TensorRT."""
    return (0, 0, 0)


def get_trt_runtime_version() -> tuple[int, int, int]:
    """(0, 0, 0): there is no TensorRT."""
    return (0, 0, 0)


__all__ = [
    "Config",
    "DataType",
    "NoEffectWarning",
    "PassBuilder",
    "PlaceType",
    "PrecisionType",
    "Predictor",
    "PredictorPool",
    "Tensor",
    "as_paddle",
    "create_predictor",
    "get_num_bytes_of_data_type",
    "get_trt_compile_version",
    "get_trt_runtime_version",
    "get_version",
]

PADDLE_NAMES = tuple(n for n in __all__ if n not in ("NoEffectWarning", "PassBuilder", "as_paddle"))
"""What paddle.inference has, too, under the same name."""
