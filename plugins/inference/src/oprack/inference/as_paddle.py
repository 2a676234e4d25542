"""Lets a client that imports `paddle.inference` run on oprack without a change."""

from __future__ import annotations

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
from oprack.inference.settings import InternalUtils, say_once
from oprack.inference.stand_ins import StandIn, StandIns
from oprack.inference.tensor_handle import Tensor

_INFERENCE = {
    found.__name__: found
    for found in (
        Config,
        DataType,
        InternalUtils,
        PlaceType,
        PrecisionType,
        Predictor,
        PredictorPool,
        Tensor,
        create_predictor,
        get_num_bytes_of_data_type,
        get_trt_compile_version,
        get_trt_runtime_version,
        get_version,
    )
}
"""What paddle.inference has, too, under the same name."""


class as_paddle(StandIns):
    """`oprack.inference.as_paddle()` puts stand-ins for `paddle` and `paddle.inference` into sys.modules.

    Call it before the client is imported; as a context manager it takes them out again.

    Raises:
        PreconditionNotMetError: Paddle itself is imported already.
    """

    library = "paddle"
    serves = "paddle.inference"
    names = ("paddle", "paddle.inference", "paddle.amp", "paddle.device", "paddle.version")

    def _fill(self, modules: dict[str, StandIn]) -> None:
        vars(modules["paddle.inference"]).update(_INFERENCE)
        compiled = {f"is_compiled_with_{kind}": _never for kind in ("cuda", "rocm", "xpu")}
        devices = {"get_device": _get_device, "set_device": _set_device}
        vars(modules["paddle.device"]).update(compiled | devices, get_all_custom_device_type=list)
        vars(modules["paddle.amp"]).update(is_bfloat16_supported=_never, is_float16_supported=_never)
        vars(modules["paddle.version"]).update(full_version=PADDLE_VERSION)
        vars(modules["paddle"]).update(compiled | devices, __version__=PADDLE_VERSION)


def _never(*_: object) -> bool:
    return False


def _get_device() -> str:
    return "cpu"


def _set_device(device: str) -> str:
    """Where eager calls of Paddle would run, of which the stand-in has none."""
    if str(device).partition(":")[0] != "cpu":
        say_once(f"paddle.device.set_device({device!r})", "a Config says where its predictor runs: enable_use_gpu()")
    return str(device)
