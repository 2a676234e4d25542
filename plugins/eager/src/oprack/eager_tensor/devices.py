"""DeviceContexts and random numbers of eager calls."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import numpy as np
from oprack.device import DeviceContext, DeviceContextPool
from oprack.eager_tensor.meta import CPU
from oprack.errors import InvalidArgumentError, OprackError
from oprack.packs.manager import default_manager
from oprack.runtime import Executor, RandomState
from oprack.runtime.checks import Checks
from oprack.tensor import CPUPlace, CUDAPinnedPlace, CUDAPlace, Place
from oprack.types import ALL_DTYPES, dtype_name

RANDOM = RandomState()
"""State of the random numbers of eager calls; `oprack.seed` sets it."""


def seed(value: int) -> None:
    """Restart the random numbers of ops without a seed attribute from this seed.

    Args:
        value: The seed.
    """
    RANDOM.load_state({"seed": value, "draws": {}})


@contextlib.contextmanager
def other_draws(number: int) -> Iterator[None]:
    """Let eager calls inside draw other random numbers than those outside: of a stream with this number."""
    seed = RANDOM.seed
    RANDOM.seed = (seed + number * 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
    try:
        yield
    finally:
        RANDOM.seed = seed


def pool() -> DeviceContextPool:
    """The pool of the packs in use."""
    return default_manager().device_contexts


def executor(
    place: Place, prepared: bool = True, deterministic: bool = False, checks: Checks | None = None
) -> Executor:
    """An executor that draws from the random numbers of eager calls."""
    runner = Executor(place, prepared=prepared, deterministic=deterministic, checks=checks)
    runner.random = RANDOM
    return runner


_HOME: ContextVar[Place] = ContextVar("oprack_home", default=CPU)
home = _HOME.get
"""The place of parameters, and of results of calls without inputs, where nothing else says one."""


@contextlib.contextmanager
def use_home(place: Place) -> Iterator[None]:
    """Let `home()` be a place inside a with block."""
    token = _HOME.set(place)
    try:
        yield
    finally:
        _HOME.reset(token)


def filled_array(shape: tuple[int, ...], dtype: Any, place: Place, value: float) -> Any:
    """An array at a place, every element the same."""
    if place is CPU:
        return np.full(shape, value, dtype)
    device = context(place)
    with device.activate():
        return device.xp.full(shape, value, dtype)


_PLACE_NAMES: dict[str, type[Place]] = {
    "cpu": CPUPlace,
    "cuda": CUDAPlace,
    "gpu": CUDAPlace,
    "cuda_pinned": CUDAPinnedPlace,
}


def place_of(value: Any) -> Place | None:
    """Convert a Place or its name ("cpu", "cuda" or "gpu", "cuda:1", that of a plugin); None for anything else."""
    if isinstance(value, Place):
        return value
    if not isinstance(value, str) or value in ALL_DTYPES:  # which are asked for far more often
        return None
    kind, colon, number = value.partition(":")
    if not (number.isdecimal() or not colon):
        return None
    made = _PLACE_NAMES.get(kind) or default_manager().extensions.place_class(kind)
    if made is None:
        return None
    return CPU if made is CPUPlace else made(int(number or 0))


def required_place(value: Any, owner: str) -> Place:
    """As `place_of`, but raises InvalidArgumentError for anything that is not a place."""
    place = place_of(value)
    if place is None:
        raise InvalidArgumentError(
            f"{owner}: place is {value!r} ({type(value).__name__}); expected a Place, such as oprack.CPUPlace(), or "
            'its name: "cpu", "cuda" or "cuda:1"'
        )
    return place


def place_and_dtype(target: Any, dtype: Any, owner: str) -> tuple[Place | None, str | None]:
    """The arguments of `to(target, dtype)`, whose target is a place or a dtype, as (place, name of the dtype).

    Raises InvalidArgumentError for a target that is neither.
    """
    requested = None if dtype is None else dtype_name(dtype)
    if target is None:
        return None, requested
    place = place_of(target)
    if place is not None:
        return place, requested
    try:
        # An int is ambiguous: a device in PyTorch, a dtype in programs.
        if type(target) is int:
            raise InvalidArgumentError
        name = dtype_name(target)
    except InvalidArgumentError:
        raise InvalidArgumentError(
            f'{owner}: got {target!r} ({type(target).__name__}); expected a place ("cpu", "cuda", "cuda:1" or a Place) '
            'or a dtype, such as "float64"'
        ) from None
    if requested not in (None, name):
        raise InvalidArgumentError(f"{owner}: got two dtypes, {name} and {requested}; expected a place and a dtype")
    return None, name


def is_available(place: Place | str) -> bool:
    """Whether tensors can be at a place: a plugin serves it, and the device is there.

    Args:
        place: A Place or its name.

    Returns:
        False where `oprack.to_tensor(1.0, place=place)` would be refused.
    """
    try:
        context(required_place(place, "is_available"))
    except OprackError:
        return False
    return True


def context(place: Place) -> DeviceContext:
    """The context of a place. Raises NotFoundError when no plugin serves it."""
    return pool().get(place)
