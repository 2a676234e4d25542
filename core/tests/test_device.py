"""Devices: one context per place, and values moved to where a kernel runs and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from oprack.device import (
    CPUDeviceContext,
    DeviceContext,
    DeviceContextPool,
    transform_tensor,
)
from oprack.errors import NotFoundError
from oprack.packs.manager import PackManager
from oprack.runtime import Executor
from oprack.tensor import CPUPlace, CUDAPlace, LoDTensor, Place, Scope


class FakePlace(Place):
    """A device whose memory is NumPy's, so that copies can be counted."""

    kind = "fake"


class FakeContext(DeviceContext):
    xp = np

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.copies = 0

    def from_host(self, array: np.ndarray) -> Any:
        self.copies += 1
        return array.copy()

    def to_host(self, array: Any) -> np.ndarray:
        self.copies += 1
        return array.copy()

    def synchronize(self) -> None:
        """Nothing to wait for."""


def test_one_context_per_place() -> None:
    pool = DeviceContextPool(lambda kind: FakeContext)
    assert pool.get(CPUPlace()) is pool.get(CPUPlace())
    assert pool.get(FakePlace(0)) is pool.get(FakePlace(0))
    assert pool.get(FakePlace(0)) is not pool.get(FakePlace(1))
    made = []
    handle = pool.get(CPUPlace()).handle("engine", lambda: made.append(1) or "engine")
    assert pool.get(CPUPlace()).handle("engine", lambda: made.append(1)) == handle and made == [1]


def test_a_place_nobody_serves(rack: PackManager) -> None:
    with pytest.raises(NotFoundError, match="install one, for example oprack-cuda"):
        DeviceContextPool().get(CUDAPlace(0))
    with pytest.raises(NotFoundError, match=r"no plugin serves places of kind 'cuda' \(asked for CUDAPlace"):
        Executor(CUDAPlace(0)).pool.get(CUDAPlace(0))


def test_a_program_runs_at_the_place_and_each_value_is_copied_once(build: Any, rack: PackManager) -> None:
    x = np.ones((2, 2), np.float32)
    program = build({"x": x}, [("double", {"X": "x"}, {"Out": "y"}), ("double", {"X": "y"}, {"Out": "z"})])
    exe = Executor(FakePlace())
    exe.pool = DeviceContextPool(lambda kind: FakeContext)
    (z,) = exe.run(program, {"x": x}, ["z"], Scope())
    assert (z == 4).all() and exe.pool.get(FakePlace()).copies == 2


def test_tensors_move_between_places_and_dtypes() -> None:
    pool = DeviceContextPool(lambda kind: FakeContext)
    tensor = LoDTensor(np.arange(6, dtype=np.float32).reshape(1, 2, 3), [[0, 1]])
    assert transform_tensor(tensor, CPUPlace(), pool) is tensor
    moved = transform_tensor(tensor, FakePlace(), pool, dtype="float64")
    assert (moved.place, moved.dtype, moved.shape) == (FakePlace(), "float64", (1, 2, 3))
    assert moved.lod == [[0, 1]]
    back = transform_tensor(moved, CPUPlace(), pool, dtype="float32")
    assert (back.array == tensor.array).all()
    real = transform_tensor(LoDTensor(np.array([1 + 2j])), CPUPlace(), pool, dtype="float64")
    assert real.array.tolist() == [1.0]


def test_a_handle_may_need_another_one() -> None:
    context = CPUDeviceContext()
    made: list[str] = []

    def create(name: str, needs: str = "") -> str:
        found = context.handle(needs, lambda: create(needs)) if needs else ""
        made.append(name)
        return name + found

    for _ in range(2):
        assert context.handle("stream", lambda: create("stream", "engine")) == "streamengine"
    assert made == ["engine", "stream"]
