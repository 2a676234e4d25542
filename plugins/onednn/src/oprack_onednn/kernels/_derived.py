"""Arrays computed from constant parameters, kept for as long as the parameters live."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable

import numpy as np

from oprack_onednn.memory import Weights
from oprack_onednn.native import MemoryDesc

Make = Callable[..., np.ndarray]


class Derived:
    """What `make` computes of a constant array and further arguments."""

    def __init__(self, make: Make) -> None:
        self._make = make
        self._entries: dict[Hashable, tuple[weakref.ref[np.ndarray], np.ndarray]] = {}
        self._lock = threading.Lock()

    def get(self, array: np.ndarray, *args: Hashable) -> np.ndarray:
        key = (id(array), *args)
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or entry[0]() is not array:
                made = self._make(array, *args)
                entry = self._entries[key] = (weakref.ref(array, lambda _: self._entries.pop(key, None)), made)
            return entry[1]


class DerivedWeights(Weights):
    """A layout, as a primitive likes it, of what is computed from a constant array."""

    def __init__(
        self, derived: Derived, args: tuple[Hashable, ...], source: MemoryDesc, target: MemoryDesc, offset: int = 0
    ) -> None:
        super().__init__(source, target, offset)
        self._derived, self._args = derived, args

    def address(self, array: np.ndarray) -> int:
        return super().address(self._derived.get(array, *self._args))
