"""DeviceContextPool: one context for each place, opened on first use by the plugin that brings the place."""

from __future__ import annotations

import threading
from collections.abc import Callable

from oprack.device.context import CPUDeviceContext, DeviceContext
from oprack.device.shapes import ShapesDeviceContext
from oprack.errors import NotFoundError
from oprack.tensor.place import Place, ShapesPlace

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

        Args:
            place: The place.

        Returns:
            The context.

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
