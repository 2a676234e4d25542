"""DeviceContexts and random numbers of eager calls."""

from __future__ import annotations

from typing import Any

import numpy as np

from oprack.device import DeviceContext, DeviceContextPool
from oprack.errors import InvalidArgumentError
from oprack.packs.manager import default_manager
from oprack.runtime import Executor, RandomState
from oprack.tensor import CPUPlace, CUDAPinnedPlace, CUDAPlace, Place
from oprack.tensor.meta import CPU
from oprack.types import dtype_name

RANDOM = RandomState()
"""State of the random numbers of eager calls; `oprack.seed` sets it."""


def seed(value: int) -> None:
    """Let random ops that are called without a seed of their own start over from this one.

    Args:
        value: The seed.
    """
    RANDOM.load_state({"seed": value, "draws": {}})


def pool() -> DeviceContextPool:
    """The pool of the packs in use."""
    return default_manager().device_contexts


def executor(place: Place, prepared: bool = True, deterministic: bool = False) -> Executor:
    """An executor that shares random numbers with eager calls, as all share streams."""
    found = Executor(place, prepared=prepared, deterministic=deterministic)
    found.random = RANDOM
    return found


def filled_array(shape: tuple[int, ...], dtype: Any, place: Place, value: float) -> Any:
    """An array at a place, every element the same."""
    if place is CPU:
        return np.full(shape, value, dtype)
    device = context(place)
    with device.activate():
        return device.xp.full(shape, value, dtype)


_PLACE_NAMES = {"cpu": CPUPlace, "cuda": CUDAPlace, "gpu": CUDAPlace, "cuda_pinned": CUDAPinnedPlace}


def place_of(value: Any) -> Place | None:
    """A Place, also by its name: "cpu", "cuda" or "gpu", "cuda:1"; None when it is neither."""
    if isinstance(value, Place):
        return value
    kind, _, number = value.partition(":") if isinstance(value, str) else ("", "", "")
    if kind not in _PLACE_NAMES or not (number.isdecimal() or (not number and ":" not in str(value))):
        return None
    return CPU if kind == "cpu" else _PLACE_NAMES[kind](int(number or 0))


def required_place(value: Any, owner: str) -> Place:
    """`place_of`. Raises InvalidArgumentError for what is no place."""
    found = place_of(value)
    if found is None:
        raise InvalidArgumentError(
            f"{owner}: place is {value!r} ({type(value).__name__}); expected a Place, such as oprack.CPUPlace(), or "
            'its name: "cpu", "cuda" or "cuda:1"'
        )
    return found


def place_and_dtype(target: Any, dtype: Any, owner: str) -> tuple[Place | None, str | None]:
    """What `to(target, dtype)` asks for: target is a place or a dtype. Raises InvalidArgumentError for neither."""
    wanted = None if dtype is None else dtype_name(dtype)
    if target is None:
        return None, wanted
    place = place_of(target)
    if place is not None:
        return place, wanted
    try:
        if type(target) is int:  # PyTorch's number of a device, and that of a dtype in programs
            raise InvalidArgumentError
        name = dtype_name(target)
    except InvalidArgumentError:
        raise InvalidArgumentError(
            f'{owner}: got {target!r} ({type(target).__name__}); expected a place ("cpu", "cuda", "cuda:1" or a Place) '
            'or a dtype, such as "float64"'
        ) from None
    if wanted not in (None, name):
        raise InvalidArgumentError(f"{owner}: got two dtypes, {name} and {wanted}; expected a place and a dtype")
    return None, name


def context(place: Place) -> DeviceContext:
    """The context of a place. Raises NotFoundError when no plugin serves it."""
    return pool().get(place)
