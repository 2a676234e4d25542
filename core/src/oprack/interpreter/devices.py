"""DeviceContexts and random numbers of eager calls."""

from __future__ import annotations

from typing import Any

import numpy as np

from oprack.device import DeviceContext, DeviceContextPool
from oprack.interpreter.kinds import CPU
from oprack.packs.manager import default_manager
from oprack.runtime import Executor, RandomState
from oprack.tensor import Place

RANDOM = RandomState()
"""State of the random numbers of eager calls; `oprack.seed` sets it."""


def pool() -> DeviceContextPool:
    """The pool of the packs in use."""
    return default_manager().device_contexts


def executor(place: Place, prepared: bool = True) -> Executor:
    """An executor that shares random numbers with eager calls, as all share streams."""
    found = Executor(place, prepared=prepared)
    found.random = RANDOM
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
