"""paddle.device: the devices of this process, which are CPUs, and GPUs where a plugin serves them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import oprack
from oprack.eager_tensor.devices import is_available
from oprack.errors import NotFoundError

_device = ["cpu"]


def get_device() -> str:
    """Where new tensors are meant to be."""
    return _device[0]


def set_device(device: str) -> Any:
    """Say where new tensors are meant to be.

    Raises:
        NotFoundError: No plugin serves the device.
    """
    kind, _, number = str(device).partition(":")
    if kind == "gpu" and not is_available("cuda"):
        raise NotFoundError("set_device: no plugin serves GPUs here; pip install oprack-cuda brings one")
    if kind not in ("cpu", "gpu"):
        raise NotFoundError(f"set_device: {device!r} is no device here; expected 'cpu' or 'gpu:0'")
    _device[0] = "cpu" if kind == "cpu" else f"gpu:{number or 0}"
    return oprack.CPUPlace() if kind == "cpu" else oprack.CUDAPlace(int(number or 0))


def get_all_device_type() -> list[str]:
    """The kinds of devices."""
    return ["cpu", *(["gpu"] if is_available("cuda") else [])]


def get_available_device() -> list[str]:
    """The devices."""
    return ["cpu", *(["gpu:0"] if is_available("cuda") else [])]


def get_all_custom_device_type() -> list[str]:
    """Kinds of devices that plugins of Paddle bring: none."""
    return []


def get_available_custom_device() -> list[str]:
    """Devices that plugins of Paddle bring: none."""
    return []


def device_count() -> int:
    """How many GPUs are served."""
    count = 0
    while is_available(f"cuda:{count}"):
        count += 1
    return count


def empty_cache() -> None:
    """Nothing to do: what a GPU's memory keeps is up to the array library."""


def get_cudnn_version() -> None:
    """None: no op here asks for cuDNN by its version."""
    return None


def _answer(name: str, value: bool) -> Callable[..., bool]:
    def answer(*_: Any) -> bool:
        return value

    answer.__name__ = answer.__qualname__ = name
    answer.__doc__ = f"Whether {name.removeprefix('is_compiled_with_')} is served: {value}."
    return answer


is_compiled_with_rocm = _answer("is_compiled_with_rocm", False)
is_compiled_with_xpu = _answer("is_compiled_with_xpu", False)
is_compiled_with_ipu = _answer("is_compiled_with_ipu", False)
is_compiled_with_npu = _answer("is_compiled_with_npu", False)
is_compiled_with_cinn = _answer("is_compiled_with_cinn", False)
is_compiled_with_custom_device = _answer("is_compiled_with_custom_device", False)
is_compiled_with_distribute = _answer("is_compiled_with_distribute", True)


def is_compiled_with_cuda() -> bool:
    """Whether a plugin serves GPUs here."""
    return bool(is_available("cuda"))


def synchronize(device: Any = None) -> None:
    """Nothing to wait for: calls are done on return, but for those of a GPU, whose results wait when they are read."""


class Stream:
    """The order of calls, of which there is one."""

    def __init__(self, device: Any = None, priority: int = 2, stream_base: Any = None) -> None:
        self.device = device or get_device()

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def query(self) -> bool:
        """Whether all is done: True."""
        return True

    def wait_event(self, event: Any) -> None:
        """Nothing to wait for."""

    def wait_stream(self, stream: Any) -> None:
        """Nothing to wait for."""

    def record_event(self, event: Any = None) -> Event:
        """A mark at this place in the order."""
        event = event or Event(self.device)
        event.record(self)
        return event


class Event:
    """A mark in the order of calls, which knows the time."""

    def __init__(
        self, device: Any = None, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> None:
        self.device, self._time = device or get_device(), 0.0

    def record(self, stream: Any = None) -> None:
        """Set the mark."""
        self._time = time.perf_counter()

    def query(self) -> bool:
        """Whether the mark has been passed: True."""
        return True

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds between two marks."""
        return (end_event._time - self._time) * 1000.0


_stream = [Stream("cpu")]


def current_stream(device: Any = None) -> Stream:
    """The order of calls."""
    return _stream[0]


def set_stream(stream: Stream) -> Stream:
    """Another order; the one before."""
    before, _stream[0] = _stream[0], stream
    return before


@contextmanager
def stream_guard(stream: Any = None) -> Iterator[None]:
    """Another order inside a with block."""
    before = set_stream(stream or _stream[0])
    try:
        yield
    finally:
        set_stream(before)
