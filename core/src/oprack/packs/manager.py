"""PackManager: which packs are in use, and every question about what they bring that the rooms above ask."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from oprack.errors import AlreadyExistsError, OprackError
from oprack.packs import report
from oprack.packs.changes import changed
from oprack.packs.process import ProcessRegistrations
from oprack.packs.resolve import import_object

if TYPE_CHECKING:
    from oprack.device import DeviceContextPool


class PackManager(ProcessRegistrations):
    """The packs of one process; discovery runs when the first question is asked.

    entry_points: objects like importlib.metadata.EntryPoint, instead of those of installed distributions.
    environ: read for OPRACK_PACKS (unset: all packs; empty: none; "a,b": only these), OPRACK_BLOCK ("a,b"), and the
    cache's variables. cache: whether discovery may use the cache across processes. blocked: names of packs or
    distributions to leave out. Methods may be called from several threads.
    """

    def _forget(self) -> None:
        super()._forget()
        self._observers: list[Any] | None = None

    # Places, libraries and observers ----------------------------------------------------------------------------------
    def targets(self, kind: str) -> list[tuple[str, str, Any]]:
        """What packs registered of one kind.

        Args:
            kind: "place", "observer" and so on.

        Returns:
            (owner, key, object or "module:name") for each.
        """
        return [(pack.owner, key, target) for pack, key, target in self._loaded().targets.get(kind, ())]

    def place_factory(self, kind: str) -> Any:
        """What a pack registered for a sort of place, imported now; None when no pack did.

        Args:
            kind: The sort of place, such as "cuda".

        Returns:
            The function that opens a device context.

        Raises:
            AlreadyExistsError: When two packs do.
            PackImportError: When it can't be imported.
        """
        found = [(owner, target) for owner, key, target in self.targets("place") if key == kind]
        if len(found) > 1:
            raise AlreadyExistsError(
                f"place {kind!r} is brought by {' and '.join(o for o, _ in found)}; leave one out: "
                + report.blocks(found)
            )
        for owner, target in found:
            return import_object(target, f"place {kind} of {owner}") if isinstance(target, str) else target
        return None

    @cached_property
    def device_contexts(self) -> DeviceContextPool:
        """The pool that all who run ops of these packs share, so that a place has one DeviceContext."""
        from oprack.device import DeviceContextPool  # which imports an array library

        with self._lock:  # threads that ask at once get one pool
            made = DeviceContextPool(lambda kind: self.place_factory(kind))
            shared: DeviceContextPool = self.__dict__.setdefault("device_contexts", made)
            return shared

    def libraries(self) -> dict[str, Any]:
        """Kernel libraries by name, imported now; in place of one that can't be imported, the error.

        Returns:
            Name -> the object that speaks for the library.
        """
        found: dict[str, Any] = {}
        for owner, name, target in self.targets("library"):
            try:
                found[name] = import_object(target, f"library {name} of {owner}")
            except OprackError as e:
                found[name] = e
        return found

    def library_attrs(self) -> dict[str, str]:
        """Kernel libraries that an attribute of ops asks for, and the attribute.

        Returns:
            Name of the library -> name of the attribute.
        """
        return {name: attr for _, name, attr in self.targets("library attribute")}

    def observers(self) -> list[Any]:
        """Observers of runs of all packs, imported once; one that can't be imported is reported and left out.

        Returns:
            The observers.
        """
        targets = self.targets("observer")
        # Forgotten with the packs that they came from; two threads may both import them, and get the same objects.
        if self._observers is None:
            found = []
            for owner, _, target in targets:
                try:
                    found.append(import_object(target, f"observer of {owner}") if isinstance(target, str) else target)
                except OprackError as e:
                    self._warn(f"{e}", owner, "observer", str(target))
            self._observers = found
        return list(self._observers)

    # Layers -----------------------------------------------------------------------------------------------------------
    def layer_names(self, namespace: str) -> list[str]:
        """Names below `oprack.<namespace>` ("layers", "optimizer" ...) that packs in use bring, sorted.

        Args:
            namespace: "layers", "optimizer" and so on.

        Returns:
            The names.
        """
        self._loaded()
        return self._layers.names(namespace)

    def layer(self, namespace: str, name: str) -> Any:
        """What a pack brings as `oprack.<namespace>.<name>`, imported on first use.

        Args:
            namespace: "layers", "optimizer" and so on.
            name: The name.

        Returns:
            The function, class or module.

        Raises:
            UnknownLayerError: No pack in use brings it; the message has close matches.
            AlreadyExistsError: Two packs bring it.
            PackImportError: It can't be imported.
        """
        definers = self._loaded().definers.get(name)
        return self._layers.load(f"{namespace}.{name}", self._packs or (), definers[0].pack.owner if definers else "")


_default: PackManager | None = None
# A stack without a lock: it is for tests, which put managers there one at a time.
_used: list[PackManager] = []
_default_lock = threading.Lock()


def default_manager() -> PackManager:
    """The manager of this process, or the one that `use_manager` put in its place.

    Returns:
        The manager.
    """
    global _default
    if _used:
        return _used[-1]
    # Two managers would give one process two sets of kernels, libraries and device contexts.
    with _default_lock:
        if _default is None:
            _default = PackManager()
        return _default


@contextmanager
def use_manager(manager: PackManager) -> Iterator[PackManager]:
    """Make a manager the default one, in all threads, for the length of a with block; meant for tests.

    Args:
        manager: The manager.

    Yields:
        The manager.
    """
    _used.append(manager)
    changed()
    try:
        yield manager
    finally:
        _used.remove(manager)
        changed()
