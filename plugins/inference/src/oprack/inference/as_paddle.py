"""Lets a client that imports `paddle.inference` run on oprack without a change."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType, TracebackType
from typing import Any, Self

from oprack.errors import PreconditionNotMetError
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

_NAMES = ("paddle", "paddle.inference", "paddle.amp", "paddle.device", "paddle.version")


class _Module(ModuleType):
    """A stand-in module that says what it lacks."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(
            f"{self.__name__}.{name} is not provided by oprack.inference.as_paddle(), which stands in for "
            f"paddle.inference only; it has {', '.join(n for n in vars(self) if not n.startswith('_'))}"
        )


class as_paddle:
    """`oprack.inference.as_paddle()` puts stand-ins for `paddle` and `paddle.inference` into sys.modules.

    Call it before the client is imported; as a context manager it takes them out again.

    Raises:
        PreconditionNotMetError: Paddle itself is imported already.
    """

    def __init__(self) -> None:
        real = sys.modules.get("paddle")
        if real is not None and not isinstance(real, _Module):
            raise PreconditionNotMetError(
                f"as_paddle(): paddle is imported already from {getattr(real, '__file__', '?')}; call as_paddle() "
                "first, in a process that does not import Paddle"
            )
        self._before = {name: sys.modules.get(name) for name in _NAMES}
        sys.modules.update(_stand_ins())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.uninstall()

    def uninstall(self) -> None:
        """Put back what sys.modules held before."""
        for name, module in self._before.items():
            if module is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = module


def _stand_ins() -> dict[str, ModuleType]:
    modules: dict[str, ModuleType] = {name: _Module(name, f"Stand-in for {name}, served by oprack.") for name in _NAMES}
    for name, module in modules.items():
        module.__file__ = __file__  # "cannot import name 'nn' from 'paddle' (...)" then says who stands there
        # clients ask importlib.util.find_spec whether Paddle is installed
        module.__spec__ = ModuleSpec(name, None, origin=__file__, is_package=name == "paddle")
    paddle = modules["paddle"]
    paddle.__path__ = []
    vars(modules["paddle.inference"]).update(_INFERENCE)
    compiled = {f"is_compiled_with_{kind}": _never for kind in ("cuda", "rocm", "xpu")}
    devices = {"get_device": _get_device, "set_device": _set_device}
    vars(modules["paddle.device"]).update(compiled | devices, get_all_custom_device_type=list)
    vars(modules["paddle.amp"]).update(is_bfloat16_supported=_never, is_float16_supported=_never)
    vars(modules["paddle.version"]).update(full_version=PADDLE_VERSION)
    below = {name.partition(".")[2]: module for name, module in modules.items() if module is not paddle}
    vars(paddle).update(below | compiled | devices, __version__=PADDLE_VERSION)
    return modules


def _never(*_: object) -> bool:
    return False


def _get_device() -> str:
    return "cpu"


def _set_device(device: str) -> str:
    """Where eager calls of Paddle would run, of which the stand-in has none."""
    if str(device).partition(":")[0] != "cpu":
        say_once(f"paddle.device.set_device({device!r})", "a Config says where its predictor runs: enable_use_gpu()")
    return str(device)
