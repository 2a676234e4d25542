"""paddle.inference's interface: Config, create_predictor, Predictor and their handles, on oprack's executor."""

from __future__ import annotations

from oprack.inference.as_paddle import as_paddle
from oprack.inference.config import Config
from oprack.inference.enums import DataType, PlaceType, PrecisionType, get_num_bytes_of_data_type
from oprack.inference.no_effect import InternalUtils, NoEffectWarning
from oprack.inference.pass_builder import PassBuilder
from oprack.inference.predictor import Predictor, create_predictor
from oprack.inference.predictor_pool import PredictorPool
from oprack.inference.tensor_handle import Tensor
from oprack.inference.version import PADDLE_VERSION, get_trt_compile_version, get_trt_runtime_version, get_version

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
    "as_paddle",
    "create_predictor",
    "get_num_bytes_of_data_type",
    "get_trt_compile_version",
    "get_trt_runtime_version",
    "get_version",
]
