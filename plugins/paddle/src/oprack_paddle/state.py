"""The state of a process: the default dtype, whether calls are run at once, and random numbers that no op draws."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack import functional as F
from oprack.interpreter.current import CURRENT
from oprack.interpreter.modes import current_mode

_default = ["float32"]
_generators: list[np.random.Generator] = []


def dtype_name(dtype: Any) -> Any:
    """The name of a dtype of Paddle, NumPy or oprack; None as it is."""
    if dtype is None or isinstance(dtype, str):
        return dtype
    return getattr(dtype, "name", None) or np.dtype(dtype).name


def get_default_dtype() -> str:
    """The dtype of floating numbers for which none is given."""
    return _default[0]


def set_default_dtype(d: Any) -> None:
    """Set the dtype of floating numbers for which none is given.

    Raises:
        TypeError: It is no floating dtype.
    """
    name = dtype_name(d)
    if name not in ("float16", "bfloat16", "float32", "float64"):
        raise TypeError(f"set_default_dtype: d is {d!r}; expected float16, bfloat16, float32 or float64")
    _default[0] = name


def enable_static() -> None:
    """From now on, calls append to the current program."""
    CURRENT.set(current_mode().but(static=True))


def disable_static(place: Any = None) -> None:
    """From now on, calls are run at once."""
    CURRENT.set(current_mode().but(static=False))


def in_dynamic_mode() -> bool:
    """Whether calls are run at once."""
    return not current_mode().static


in_dynamic_or_pir_mode = in_dynamic_mode


def forget_generator() -> None:
    """Begin anew after a seed."""
    _generators.clear()


def generator() -> np.random.Generator:
    """Random numbers of distributions that no op draws, from the seed of oprack."""
    if not _generators:
        first = F.randint(shape=[4], low=0, high=2**31 - 1)
        _generators.append(np.random.default_rng(np.asarray(first).tolist()))
    return _generators[0]
