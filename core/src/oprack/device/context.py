"""DeviceContext: the device state that kernels of one place share; it owns the stream and the library handles."""

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
        self._lock = threading.RLock()  # Reentrant, as creating a handle may request another one.

    def handle(self, name: str, create: Callable[[], Any]) -> Any:
        """A library handle (an engine, a cuBLAS handle) owned by this context; created once, on first use.

        Args:
            name: Its name within this context.
            create: Creates it.

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
        """Wrap the function of a prepared plan for this place; by default it is returned as it is.

        A place that can record work and replay it, as CUDA graphs do, returns a function that does so.

        Args:
            function: The function, called as function(run, *arrays and offsets).
            op_types: The types of the ops that it runs.
        """
        return function

    def from_host(self, array: np.ndarray) -> Any:
        """Copy an array to this place's memory.

        Args:
            array: An array in host memory.

        Returns:
            The array at this place.

        Raises:
            NotImplementedError: The class does not define the method.
        """
        raise NotImplementedError(f"{type(self).__name__} must define from_host(array)")

    def to_host(self, array: Any) -> np.ndarray:
        """Copy an array to host memory once it is computed; an array in host memory is returned as it is.

        Args:
            array: An array of this place.

        Returns:
            The array in host memory.

        Raises:
            NotImplementedError: The class does not define the method.
        """
        raise NotImplementedError(f"{type(self).__name__} must define to_host(array)")

    def synchronize(self) -> None:
        """Wait until all work enqueued on this context is done.

        Raises:
            NotImplementedError: The class does not define the method.
        """
        raise NotImplementedError(f"{type(self).__name__} must define synchronize()")


class CPUDeviceContext(DeviceContext):
    """Host memory and NumPy; every kernel is synchronous.

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
        """Do nothing: kernels are synchronous."""
