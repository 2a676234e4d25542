"""Constants at a device: arrays of the host that kernels ask for again and again, copied once and kept for good."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from oprack.kernel import Array

from oprack_cuda.library import UnavailableError

# Larger arrays are not looked up, since that takes reading them; together they take no more than this
_LARGEST, _TOGETHER = 1 << 18, 1 << 26


class ConstantStore:
    """By device, stream and content. Nothing is let go of: recorded graphs may read it."""

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._known: dict[tuple[Any, ...], Any] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    def __call__(self, array: np.ndarray) -> Array:
        """Raises UnavailableError while a graph is recorded, which must not copy from the host."""
        cuda = self._cupy.cuda
        stream = cuda.get_current_stream()
        key = None
        if array.nbytes <= _LARGEST:
            key = (cuda.runtime.getDevice(), stream.ptr, array.dtype.str, array.shape, array.tobytes())
            found = self._known.get(key)
            if found is not None:
                return found
        if stream.is_capturing():
            raise UnavailableError("a constant would be copied from the host while a graph is recorded")
        copied = self._cupy.array(array, order="C")
        with self._lock:
            if key is not None and self._bytes + array.nbytes <= _TOGETHER:
                self._known[key] = copied
                self._bytes += array.nbytes
        return copied
