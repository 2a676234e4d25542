"""DeviceContext: the device state that kernels of one place share; their pool, and constants that are made once."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from oprack.errors import NotFoundError
from oprack.tensor.place import CPUPlace, Place, ShapesPlace
from oprack.tensor.shape_only import ShapeArray, shape_array

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

        Raises:
            NotImplementedError: The class does not define the method.
        """
        raise NotImplementedError(f"{type(self).__name__} must define from_host(array)")

    def to_host(self, array: Any) -> np.ndarray:
        """Copy an array to host memory once it is computed; an array in host memory is returned as it is.

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
        """The array itself."""
        return array

    def to_host(self, array: np.ndarray) -> np.ndarray:
        """The array itself."""
        return array

    def synchronize(self) -> None:
        """Do nothing: kernels are synchronous."""


class _Shapes:
    """The few functions of an array library that create arrays."""

    @staticmethod
    def full(shape: Sequence[int], value: Any, dtype: Any) -> ShapeArray:
        """An array of this shape."""
        return shape_array(shape, dtype)


class ShapesDeviceContext(DeviceContext):
    """No memory: arrays are ShapeArrays. What is asked for by value is NaN, or 0 where the dtype has none."""

    xp = _Shapes()

    def from_host(self, array: np.ndarray) -> ShapeArray:
        """The shape of an array."""
        return shape_array(array.shape, array.dtype)

    def to_host(self, array: Any) -> np.ndarray:
        """An array without meaning: NaN, or 0 where the dtype has none.

        Args:
            array: An array of this place.

        Returns:
            A read-only array of this shape.
        """
        nothing = np.zeros((), array.dtype)
        if array.dtype.kind in ("f", "c"):
            nothing[()] = np.nan
        return np.broadcast_to(nothing, array.shape)

    def synchronize(self) -> None:
        """Do nothing: nothing runs."""


Factory = Callable[[Place], DeviceContext]


class DeviceContextPool:
    """Contexts by place.

    Args:
        find_factory: Called with a kind of place; returns its factory (hook oprack_places), or None when there is none.
    """

    def __init__(self, find_factory: Callable[[str], Factory | None] | None = None) -> None:
        self._find_factory = find_factory
        self._contexts: dict[Place, DeviceContext] = {}
        self._lock = threading.Lock()

    def get(self, place: Place) -> DeviceContext:
        """The context of a place.

        Raises:
            NotFoundError: No installed plugin brings such places.
        """
        # Safe without the lock, since contexts are added and never replaced.
        context = self._contexts.get(place)
        if context is not None:
            return context
        # A place has exactly one context, so that all its users share a stream and library handles.
        with self._lock:
            if place not in self._contexts:
                self._contexts[place] = self._create(place)
            return self._contexts[place]

    def _create(self, place: Place) -> DeviceContext:
        if place.kind == "cpu":
            return CPUDeviceContext(place)
        if place.kind == ShapesPlace.kind:
            return ShapesDeviceContext(place)
        factory = self._find_factory(place.kind) if self._find_factory else None
        if factory is None:
            raise NotFoundError(
                f"no plugin serves places of kind {place.kind!r} (asked for {place!r}); install one, for example "
                f"oprack-{place.kind}, or use oprack.CPUPlace()"
            )
        return factory(place)
