"""paddle.inference's interface: Config, create_predictor, Predictor and their handles, on oprack's executor."""

from __future__ import annotations

from oprack.inference.as_onnxruntime import as_onnxruntime
from oprack.inference.as_paddle import as_paddle
from oprack.inference.config import Config
from oprack.inference.enums import (
    PADDLE_VERSION,
    DataType,
    PlaceType,
    PrecisionType,
    get_num_bytes_of_data_type,
    get_trt_compile_version,
    get_trt_runtime_version,
    get_version,
)
from oprack.inference.predictor import Predictor, PredictorPool, create_predictor
from oprack.inference.settings import InternalUtils, NoEffectWarning, PassBuilder
from oprack.inference.tensor_handle import Tensor

__all__ = [
    "PADDLE_VERSION",
    "Config",
    "DataType",
    "InternalUtils",
    "NoEffectWarning",
    "PassBuilder",
    "PlaceType",
    "PrecisionType",
    "Predictor",
    "PredictorPool",
    "Tensor",
    "as_onnxruntime",
    "as_paddle",
    "create_predictor",
    "get_num_bytes_of_data_type",
    "get_trt_compile_version",
    "get_trt_runtime_version",
    "get_version",
]
