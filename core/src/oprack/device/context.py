"""DeviceContext: what kernels of one place need besides their arrays; it owns streams and library handles."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from oprack.tensor.place import CPUPlace, Place

_NOTHING_TO_ACTIVATE = contextlib.nullcontext()


class DeviceContext:
    """Base of device contexts; a plugin derives a class for its places and registers a factory for it.

    Args:
        place: The place.

    Attributes:
        xp: The array library of the place (numpy, cupy).
        stream: What kernels enqueue on; None where work is synchronous.
    """

    xp: Any = None
    stream: Any = None

    def __init__(self, place: Place) -> None:
        self.place = place
        self._handles: dict[str, Any] = {}
        self._lock = threading.RLock()  # creating one handle may ask for another

    def handle(self, name: str, create: Callable[[], Any]) -> Any:
        """A library handle (an engine, a cuBLAS handle) owned by this context; created once, on first use.

        Args:
            name: Names it within this context.
            create: Makes it.

        Returns:
            The handle.
        """
        with self._lock:
            if name not in self._handles:
                self._handles[name] = create()
            return self._handles[name]

    def activate(self) -> AbstractContextManager[None]:
        """Make the device and its stream current in the calling thread, for the length of a run."""
        return _NOTHING_TO_ACTIVATE

    def plan_function(self, function: Callable[..., Any], op_types: Collection[str]) -> Callable[..., Any]:
        """The function of a prepared plan, called as function(run, *arrays and offsets), as this place runs it.

        A place that can record work and repeat it returns one of its own.

        Args:
            op_types: The ops that it consists of.
        """
        return function

    def from_host(self, array: np.ndarray) -> Any:
        """The array in this place's memory.

        Args:
            array: An array in host memory.

        Returns:
            The array.

        Raises:
            NotImplementedError: The class has none.
        """
        raise NotImplementedError(f"{type(self).__name__} must define from_host(array)")

    def to_host(self, array: Any) -> np.ndarray:
        """The array as numpy.ndarray, copied once after it is computed; memory of the host is returned itself.

        Args:
            array: An array of this place.

        Returns:
            The array.

        Raises:
            NotImplementedError: The class has none.
        """
        raise NotImplementedError(f"{type(self).__name__} must define to_host(array)")

    def synchronize(self) -> None:
        """Wait until all work enqueued on this context is done.

        Raises:
            NotImplementedError: The class has none.
        """
        raise NotImplementedError(f"{type(self).__name__} must define synchronize()")


class CPUDeviceContext(DeviceContext):
    """Host memory and NumPy; every kernel is done when it returns.

    Args:
        place: The place; default: the CPU.
    """

    xp = np

    def __init__(self, place: Place | None = None) -> None:
        super().__init__(place or CPUPlace())

    def from_host(self, array: np.ndarray) -> np.ndarray:
        """The array itself.

        Args:
            array: The array.

        Returns:
            The array.
        """
        return array

    def to_host(self, array: np.ndarray) -> np.ndarray:
        """The array itself.

        Args:
            array: The array.

        Returns:
            The array.
        """
        return array

    def synchronize(self) -> None:
        """Nothing to wait for."""
