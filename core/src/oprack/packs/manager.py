"""PackManager: the packs in use, and the look-up of everything that they bring."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from oprack.errors import OprackError
from oprack.packs import report
from oprack.packs.changes import changed
from oprack.packs.process import ProcessRegistrations
from oprack.packs.resolve import import_object

if TYPE_CHECKING:
    from oprack.device import DeviceContextPool


class PackManager(ProcessRegistrations):
    """The packs of one process, discovered on first use. Methods may be called from several threads.

    Args:
        entry_points: Objects like importlib.metadata.EntryPoint; default: those of installed distributions.
        environ: Read for OPRACK_PACKS (unset: all packs; empty: none; "a,b": only these), OPRACK_BLOCK ("a,b") and the
            variables of the cache.
        cache: Whether discovery may use the cache across processes.
        blocked: Names of packs or distributions to leave out.
        prefer: Names of packs or distributions whose op, function, role, pass or kernel is used where several packs
            bring the same, the most preferred one first; they go before those of OPRACK_PREFER ("a,b").
        priorities: Name of a pack or distribution -> what is added to the priority of its kernels; it goes before
            OPRACK_PRIORITY ("a=10,b=-5").
        allow: File of the only distributions that may be loaded, with their hashes (`oprack packs --lock FILE`);
            default: OPRACK_ALLOW, else all.
    """

    def _forget(self) -> None:
        super()._forget()
        self._observers: list[Any] | None = None

    # Places, libraries and observers ----------------------------------------------------------------------------------
    def targets(self, kind: str) -> list[tuple[str, str, Any]]:
        """The registrations of one kind, of all packs in use; of a name that several bring, one of them.

        Args:
            kind: "place", "observer" and so on.

        Returns:
            (owner, key, object or "module:name") for each.
        """
        rows, settled = self._loaded().unique(kind)
        if settled and kind not in ("layer", "role"):  # these are warned of when they are used
            self._warn_settled(settled)
        return [(pack.owner, key, target) for pack, key, target in rows]

    def place_factory(self, kind: str) -> Any:
        """Import the factory that a pack registered for a kind of place.

        Args:
            kind: The kind of place, such as "cuda".

        Returns:
            The function that opens a device context; None when no pack registered one.

        Raises:
            PackImportError: It can't be imported.
        """
        for owner, key, target in self.targets("place"):
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
        for owner, key, target in self.targets("place class"):
            if key == kind:
                return import_object(target, f"class of place {kind} of {owner}")
        return None

    @cached_property
    def device_contexts(self) -> DeviceContextPool:
        """The pool shared by everything that runs ops of these packs, so that a place has one DeviceContext."""
        from oprack.device import DeviceContextPool  # Imported here, as it imports an array library.

        # cached_property takes no lock since Python 3.12: by setdefault threads that arrive at once agree on one pool.
        with self._lock:
            pool = DeviceContextPool(lambda kind: self.place_factory(kind))
            shared: DeviceContextPool = self.__dict__.setdefault("device_contexts", pool)
            return shared

    def libraries(self) -> dict[str, Any]:
        """Import the kernel libraries of all packs.

        Returns:
            Name -> the object that represents the library, or the OprackError when it can't be imported.
        """
        libraries: dict[str, Any] = {}
        for owner, name, target in self.targets("library"):
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
        return {name: attr for _, name, attr in self.targets("library attribute")}

    def observers(self) -> list[Any]:
        """Observers of runs of all packs, imported once; one that can't be imported is reported and left out.

        Returns:
            The observers.
        """
        targets = self.targets("observer")
        # `_forget` clears the cache together with the packs. No lock: two threads that both import get equal lists.
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

    def unknown_command(self, name: str, known: Iterable[str]) -> str:
        """What to say of a command that no pack in use brings.

        Args:
            name: The command.
            known: The commands there are.

        Returns:
            The message, with the distribution that brings it, or commands of like names.
        """
        self._loaded()
        return report.unknown_command(name, known, self._packs or ())

    # Layers -----------------------------------------------------------------------------------------------------------
    def layer_names(self, namespace: str) -> list[str]:
        """The names that packs in use add to `oprack.<namespace>`, sorted.

        Args:
            namespace: "layers", "optimizer" and so on.

        Returns:
            The names.
        """
        self._loaded()
        return self._layers.names(namespace)

    def layer(self, namespace: str, name: str) -> Any:
        """The object that a pack adds as `oprack.<namespace>.<name>`, imported on first use.

        Args:
            namespace: "layers", "optimizer" and so on.
            name: The name.

        Returns:
            The function, class or module.

        Raises:
            UnknownLayerError: No pack in use brings it; the message has close matches.
            PackImportError: It can't be imported.
        """
        index = self._loaded()
        definers = index.definers.get(name)
        if settled := index.unique("layer")[1]:
            self._warn_settled([s for s in settled if s.name == f"{namespace}.{name}"])
        return self._layers.load(f"{namespace}.{name}", self._packs or (), definers[0].pack.owner if definers else "")


_default: PackManager | None = None
# The managers of active `use_manager` blocks, innermost last. No lock: only tests enter such blocks, one at a time.
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
    """Within a with block, make a manager the default one in all threads; meant for tests.

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
