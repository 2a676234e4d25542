"""A device context over strict arrays, and an executor whose place cuda it serves."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.device import DeviceContext, DeviceContextPool, set_constant_store
from oprack.runtime import Executor
from oprack.tensor import CUDAPlace, Place

from oprack_cuda import raw
from oprack_cuda.testing import emulator
from oprack_cuda.testing.namespace import xp
from oprack_cuda.testing.strict import Pointer, StrictArray


def _constant(array: np.ndarray) -> StrictArray:
    """Constants are copied once, which counts for nothing, and are not written into."""
    copied = array.copy()
    copied.flags.writeable = False
    return StrictArray(copied)


set_constant_store(xp, _constant)
raw.set_backend(xp, emulator.find)


class StrictDeviceContext(DeviceContext):
    """Place cuda over memory of the host; copies both ways, as a device does."""

    xp = xp
    stream = Pointer(0)

    def from_host(self, array: np.ndarray) -> StrictArray:
        if not isinstance(array, np.ndarray):
            raise TypeError(f"from_host got a {type(array).__name__}; expected numpy.ndarray")
        return StrictArray(array.copy())

    def to_host(self, array: StrictArray) -> np.ndarray:
        if not isinstance(array, StrictArray):
            raise TypeError(f"to_host got a {type(array).__name__}; expected an array of the device")
        return array._host.copy()

    def synchronize(self) -> None:
        """Work is done when its call returns."""


def strict_executor(place: Place | None = None, **options: Any) -> Executor:
    """`Executor(place, **options)` whose places of kind cuda are strict contexts."""
    executor = Executor(place or CUDAPlace(0), **options)
    executor.pool = DeviceContextPool(lambda kind: StrictDeviceContext if kind == "cuda" else None)
    return executor
