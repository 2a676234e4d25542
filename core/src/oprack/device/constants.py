"""Arrays that follow from shapes and attributes alone: computed on the host, copied to a device once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_STORES: dict[str, Callable[[np.ndarray], Any]] = {}


def set_constant_store(xp: Any, store: Callable[[np.ndarray], Any]) -> None:
    """Say how host arrays get to the place of an array library.

    Args:
        xp: The array library.
        store: Gives a host array at that place, the same one for equal arrays.
    """
    _STORES[xp.__name__] = store


def constant(array: np.ndarray, xp: Any) -> Any:
    """A host array at the place of xp; equal arrays may share memory, so nothing may be written into it.

    For weights of an interpolation, sizes of windows and the like, which a kernel would else copy in every call.

    Args:
        array: The host array.
        xp: The array library.

    Returns:
        The array there.
    """
    if xp is np:
        return array
    store = _STORES.get(xp.__name__)
    return xp.asarray(array) if store is None else store(array)
