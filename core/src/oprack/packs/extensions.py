"""Places, kernel libraries and observers: what packs bring beside ops, imported on first use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oprack.errors import OprackError
from oprack.packs.resolve import import_object


class Extensions:
    """What the packs in use bring beside ops and layers; made anew when they change.

    Args:
        targets: `PackManager.targets`.
        warn: Is told of what can't be imported: the text, and keys by which it is said once.
    """

    def __init__(self, targets: Callable[[str], list[tuple[str, str, Any]]], warn: Callable[..., None]) -> None:
        self._targets, self._warn = targets, warn
        self._observers: list[Any] | None = None

    def place_factory(self, kind: str) -> Any:
        """Import the factory that a pack registered for a kind of place.

        Args:
            kind: The kind of place, such as "cuda".

        Returns:
            The function that opens a device context; None when no pack registered one.

        Raises:
            PackImportError: It can't be imported.
        """
        for owner, key, target in self._targets("place"):
            if key == kind:
                return import_object(target, f"place {kind} of {owner}") if isinstance(target, str) else target
        return None

    def place_class(self, kind: str) -> Any:
        """Import the class of places that a pack registered for a kind.

        Args:
            kind: The kind of place, such as "toy".

        Returns:
            The class, which is made with the number of a device; None when no pack registered one.

        Raises:
            PackImportError: It can't be imported.
        """
        for owner, key, target in self._targets("place class"):
            if key == kind:
                return import_object(target, f"class of place {kind} of {owner}")
        return None

    def libraries(self) -> dict[str, Any]:
        """Import the kernel libraries of all packs.

        Returns:
            Name -> the object that represents the library, or the OprackError when it can't be imported.
        """
        libraries: dict[str, Any] = {}
        for owner, name, target in self._targets("library"):
            try:
                libraries[name] = import_object(target, f"library {name} of {owner}")
            except OprackError as e:
                libraries[name] = e
        return libraries

    def library_attrs(self) -> dict[str, str]:
        """The kernel libraries that ops select by an attribute, such as use_mkldnn.

        Returns:
            Name of the library -> name of the attribute.
        """
        return {name: attr for _, name, attr in self._targets("library attribute")}

    def observers(self) -> list[Any]:
        """Observers of runs of all packs, imported once; one that can't be imported is reported and left out.

        Returns:
            The observers.
        """
        targets = self._targets("observer")  # asked each time, since packs may not have been found yet
        # No lock: two threads that both import get equal lists.
        if self._observers is None:
            observers = []
            for owner, _, target in targets:
                try:
                    observer = import_object(target, f"observer of {owner}") if isinstance(target, str) else target
                except OprackError as e:
                    self._warn(f"{e}", owner, "observer", str(target))
                else:
                    observers.append(observer)
            self._observers = observers
        return list(self._observers)
