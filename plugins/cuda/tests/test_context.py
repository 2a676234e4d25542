"""The device context over a stand-in for CuPy's streams, events and pools.

Where CuPy is installed, the names that contexts use are compared with its own, which needs no GPU.
"""

from __future__ import annotations

import contextlib
import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import oprack
import oprack_cuda.context as contexts
import pytest
from oprack.desc import OpDesc
from oprack.device import DeviceContextPool, constant, set_constant_store
from oprack.errors import InvalidArgumentError
from oprack.packs.manager import default_manager
from oprack.runtime import Executor
from oprack_cuda import graphs
from oprack_cuda.constants import ConstantStore
from oprack_cuda.library import UnavailableError
from oprack_cuda.testing import StrictArray, xp
from oprack_cuda.testing.context import _constant

EVENTS: list[str] = []


class Current:
    """Enters and leaves as CuPy's devices and streams do."""

    def __enter__(self) -> Any:
        EVENTS.append(f"+{self}")
        return self

    def __exit__(self, *error: Any) -> None:
        EVENTS.append(f"-{self}")


class Device(Current):
    def __init__(self, number: int) -> None:
        self.id, self.cublas_handle, self.mem_info = number, 77, (3, 4)

    def __str__(self) -> str:
        return f"device {self.id}"

    def synchronize(self) -> None:
        EVENTS.append(f"wait for device {self.id}")


class Stream(Current):
    made = 0

    def __init__(self, non_blocking: bool) -> None:
        assert non_blocking
        Stream.made += 1
        self.ptr, self.capturing, self.waited = Stream.made, False, []

    def __str__(self) -> str:
        return "stream"

    def synchronize(self) -> None:
        EVENTS.append("wait for stream")

    def wait_event(self, event: Any) -> None:
        self.waited.append(event)

    def begin_capture(self) -> None:
        self.capturing = True

    def end_capture(self) -> Any:
        self.capturing = False
        return SimpleNamespace(launch=lambda stream: EVENTS.append("launch"))

    def is_capturing(self) -> bool:
        return self.capturing


class Event:
    def __init__(self, disable_timing: bool) -> None:
        self.done = False

    def record(self, stream: Stream) -> None:
        self.stream = stream

    def synchronize(self) -> None:
        self.done = True


class PinnedMemoryPointer(bytearray):
    """What alloc_pinned_memory gives."""


class Pool:
    def malloc(self, size: int) -> None: ...
    def used_bytes(self) -> int:
        return 1

    def total_bytes(self) -> int:
        return 2

    def set_limit(self, size: int) -> None:
        EVENTS.append(f"limit {size}")

    def free_all_blocks(self) -> None:
        EVENTS.append("free")


class Runtime:
    """The module cupy, as far as contexts use it."""

    __name__ = xp.__name__

    def __init__(self) -> None:
        self.stream = Stream(non_blocking=True)
        self.cuda = SimpleNamespace(
            Device=Device,
            Stream=Stream,
            Event=Event,
            MemoryPool=Pool,
            using_allocator=lambda malloc: contextlib.nullcontext(),
            alloc_pinned_memory=PinnedMemoryPointer,
            get_current_stream=lambda: self.stream,
            runtime=SimpleNamespace(getDeviceCount=lambda: 1, getDevice=lambda: 0),
        )
        self.get_default_memory_pool = self.get_default_pinned_memory_pool = Pool

    def __getattr__(self, name: str) -> Any:
        return getattr(xp, name)


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Any:
    runtime = Runtime()
    monkeypatch.setattr(contexts.CUDA, "require", lambda what: runtime)
    manager = default_manager()
    monkeypatch.setattr(manager, "device_contexts", DeviceContextPool(manager.extensions.place_factory))
    contexts._constants.cache_clear()
    EVENTS.clear()
    yield runtime
    set_constant_store(xp, _constant)


@pytest.fixture
def context(cupy: Any) -> contexts.CUDADeviceContext:
    return contexts.CUDADeviceContext(oprack.CUDAPlace(0))


def test_a_device_that_is_not_there(cupy: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"CUDAPlace\(3\): the driver lists 1 GPU"):
        contexts.CUDADeviceContext(oprack.CUDAPlace(3))


def test_copies_make_the_device_and_the_stream_current(context: contexts.CUDADeviceContext) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3).T
    assert str(context.stream) == "stream"
    EVENTS.clear()
    device = context.from_host(x)
    assert type(device) is StrictArray and device.flags.c_contiguous
    assert EVENTS == ["+device 0", "+stream", "-stream", "-device 0"]
    back = context.to_host(device.T)
    assert np.array_equal(back, x.T) and contexts.is_pinned(back) and not contexts.is_pinned(x)
    assert context.to_host(x) is x and context.from_host(device) is device
    assert context.to_host(context.from_host(np.zeros((0, 3), np.float32))).shape == (0, 3)


def test_pinned_memory_is_held_until_its_copy_is_done(cupy: Any, context: contexts.CUDADeviceContext) -> None:
    place = contexts.CUDAPinnedDeviceContext(oprack.CUDAPinnedPlace())
    pinned = place.from_host(np.ones((2, 2), np.float32))
    assert contexts.is_pinned(pinned) and place.to_host(pinned) is pinned
    assert (context.from_host(pinned)._host == 1).all()
    waiting = context._of_thread.in_flight
    assert len(waiting) == 1 and waiting[0][1] is pinned
    waiting[0][0].done = True
    context.hold(object())
    assert len(waiting) == 1 and waiting[0][1] is not pinned
    for _ in range(200):
        context.hold(object())
    assert len(waiting) == 64


def test_each_thread_has_a_stream(context: contexts.CUDADeviceContext) -> None:
    streams = [context.stream, context.stream]
    thread = threading.Thread(target=lambda: streams.append(context.stream))
    thread.start()
    thread.join()
    assert streams[0] is streams[1] and streams[2] is not streams[0]


def test_handles_events_and_memory(context: contexts.CUDADeviceContext) -> None:
    assert context.cublas() == 77
    event = context.event(timing=True)
    context.wait(event)
    assert context.stream.waited == [event] and event.stream is context.stream
    context.synchronize()
    assert EVENTS[-1] == "wait for stream"
    assert context.memory() == {"used": 1, "held": 2, "free": 3, "total": 4}
    context.limit_memory(5)
    assert context.release_memory() == 2 and {"limit 5", "free"} <= set(EVENTS)


def test_constants_are_copied_once_and_never_while_recording(cupy: Any, context: contexts.CUDADeviceContext) -> None:
    first = constant(np.arange(3), cupy)
    assert constant(np.arange(3), cupy) is first
    assert constant(np.arange(3).astype(np.int32), cupy) is not first
    cupy.stream.begin_capture()
    assert constant(np.arange(3), cupy) is first
    with pytest.raises(UnavailableError, match="while a graph is recorded"):
        constant(np.arange(4), cupy)
    cupy.stream.end_capture()
    large = np.zeros(1 << 19, np.uint8)
    store = ConstantStore(cupy)
    assert store(large) is not store(large)


def test_recording(context: contexts.CUDADeviceContext) -> None:
    x = xp.ones(3)
    launch, results = context.capture(lambda a: [a + 1], [x])
    assert not context.stream.capturing and (results[0]._host == 2).all()
    launch()
    assert EVENTS[-1] == "launch"

    def fails(a: Any) -> Any:
        raise ValueError("not while recording")

    with pytest.raises(ValueError, match="not while recording"):
        context.capture(fails, [x])
    assert not context.stream.capturing
    assert isinstance(context.plan_function(print, {"relu"}), graphs.RecordedPlan)


def test_executors_share_a_context(cupy: Any) -> None:
    contexts.open_cuda.cache_clear()
    contexts.open_pinned.cache_clear()
    pools = [Executor(oprack.CUDAPlace(0)).pool for _ in range(2)]
    for place in (oprack.CUDAPlace(0), oprack.CUDAPinnedPlace()):
        assert pools[0].get(place) is pools[1].get(place)
    contexts.open_cuda.cache_clear()
    contexts.open_pinned.cache_clear()


def test_a_program_runs(cupy: Any) -> None:
    executor = Executor(oprack.CUDAPlace(0))
    executor.pool = DeviceContextPool(lambda kind: contexts.CUDADeviceContext)
    program = oprack.Program()
    block = program.global_block()
    for name in ("x", "y"):
        block.create_var(name, dtype="float32", shape=[-1, 3])
    block.append_op(OpDesc("tanh", {"X": ["x"]}, {"Out": ["y"]}))
    x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    for _ in range(3):
        (y,) = executor.run(program, {"x": x}, ["y"])
        np.testing.assert_allclose(y, np.tanh(x), rtol=1e-6)
        assert EVENTS.count("+stream") == EVENTS.count("-stream") > 0


def test_names_are_cupys() -> None:
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed", exc_type=ImportError)
    cuda, stream = cupy.cuda, cupy.cuda.Stream
    found = [
        *(hasattr(cuda.Device, n) for n in ("id", "cublas_handle", "mem_info", "synchronize", "__enter__")),
        *(hasattr(stream, n) for n in ("synchronize", "wait_event", "begin_capture", "end_capture")),
        *(hasattr(stream, n) for n in ("is_capturing", "__enter__")),
        *(hasattr(cuda.Event, n) for n in ("record", "synchronize", "done")),
        *(hasattr(cuda, n) for n in ("MemoryPool", "using_allocator", "alloc_pinned_memory", "get_current_stream")),
        *(hasattr(cuda.MemoryPool, n) for n in ("malloc", "set_limit", "used_bytes", "total_bytes", "free_all_blocks")),
        *(hasattr(cuda.runtime, n) for n in ("getDevice", "getDeviceCount", "driverGetVersion", "runtimeGetVersion")),
        *(hasattr(cupy, n) for n in ("RawModule", "get_default_memory_pool", "get_default_pinned_memory_pool")),
        *(hasattr(cupy.ndarray, n) for n in ("get", "set", "data", "device", "flags", "strides")),
        hasattr(cupy.RawModule, "get_function"),
        hasattr(cuda.Graph, "launch"),
        cuda.PinnedMemoryPointer.__name__ == "PinnedMemoryPointer",
    ]
    assert all(found)
