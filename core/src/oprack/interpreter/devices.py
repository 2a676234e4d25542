"""DeviceContexts of eager calls: one per place, for as long as the packs stay the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from oprack.device import DeviceContext, DeviceContextPool
from oprack.interpreter.kinds import CPU
from oprack.packs.manager import PackManager, default_manager
from oprack.runtime import Executor, RandomState
from oprack.tensor import Place

RANDOM = RandomState()
"""State of the random numbers of eager calls; `oprack.seed` sets it."""

_pool: tuple[PackManager, DeviceContextPool] | None = None


def pool() -> DeviceContextPool:
    """The pool of the packs in use."""
    global _pool
    manager = default_manager()
    if _pool is None or _pool[0] is not manager:
        _pool = (manager, DeviceContextPool(manager.place_factory))
    return _pool[1]


def executor(place: Place, prepared: bool = True) -> Executor:
    """An executor that shares streams and random numbers with eager calls."""
    found = Executor(place, prepared=prepared)
    found.pool, found.random = pool(), RANDOM
    return found


def filled_array(shape: tuple[int, ...], dtype: Any, place: Place, value: float) -> Any:
    """An array at a place, every element the same."""
    if place is CPU:
        return np.full(shape, value, dtype)
    device = context(place)
    with device.activate():
        return device.xp.full(shape, value, dtype)


def context(place: Place) -> DeviceContext:
    """The context of a place. Raises NotFoundError when no plugin serves it."""
    return pool().get(place)
