"""What is computed from constant parameters, kept for as long as they live."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from oprack.cache import BUDGET
from oprack.kernel import Array

from oprack_onednn.chain.memory import PACKED_PARAMETERS, Weights, is_constant
from oprack_onednn.dnnl.native import MemoryDesc

if TYPE_CHECKING:
    from oprack_onednn.kernels._recurrent_layer import Layer, PrimitivesByThread


def _bytes_of(made: Any) -> int:
    """Bytes of an array, or of those that an object has."""
    arrays = [made] if isinstance(made, np.ndarray) else getattr(made, "__dict__", {}).values()
    return sum(a.nbytes for a in arrays if isinstance(a, np.ndarray))


def _forget(
    known: dict[Any, Any],
    key: Any,
    nbytes: int,
    _: Any,
    count: Callable[[str, int, int], None] = BUDGET.count,
    kind: str = PACKED_PARAMETERS,
) -> None:
    """An array is gone; called by its weak reference, so it may use no global name."""
    if known.pop(key, None) is not None:
        count(kind, -nbytes, -1)


class FromConstants:
    """What `make(arrays, *options)` gives; for constant arrays it is made once, and kept until one of them is gone."""

    def __init__(self, make: Callable[..., Any]) -> None:
        self._make = make
        self._known: dict[tuple[Hashable, ...], tuple[list[weakref.ref[np.ndarray]], Any]] = {}
        self._lock = threading.Lock()

    def __call__(self, arrays: Sequence[np.ndarray], *options: Hashable) -> Array | Layer | PrimitivesByThread:
        # Ids are used again after an array is gone, so the weak references say whether the entry is of these very
        # arrays.
        key, known = (*map(id, arrays), *options), self._known
        entry = known.get(key)
        if entry is not None and all([r() is a for r, a in zip(entry[0], arrays, strict=True)]):
            return entry[1]
        # Who can write to an array may train it: what is derived from it holds for this call alone.
        if not all(map(is_constant, arrays)):
            return self._make(arrays, *options)
        with self._lock:
            # another thread may have been faster; chains hold addresses in what it made
            entry = known.get(key)
            if entry is None or not all([r() is a for r, a in zip(entry[0], arrays, strict=True)]):
                made = self._make(arrays, *options)
                nbytes = _bytes_of(made)
                BUDGET.count(PACKED_PARAMETERS, nbytes, 1)
                entry = known[key] = ([weakref.ref(a, partial(_forget, known, key, nbytes)) for a in arrays], made)
            return entry[1]


class DerivedWeights(Weights):
    """A layout, as a primitive likes it, of what is computed from a constant array."""

    def __init__(
        self, derived: FromConstants, options: tuple[Hashable, ...], source: MemoryDesc, target: MemoryDesc
    ) -> None:
        super().__init__(source, target)
        self._derived, self._options = derived, options

    def of(self, array: np.ndarray) -> np.ndarray:
        return super().of(self._derived((array,), *self._options))
