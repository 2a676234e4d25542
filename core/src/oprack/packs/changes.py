"""Who is told when packs change: whatever keeps something that it was told of ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# Modules register when they are imported and stay for the life of the process, so nothing is ever taken out.
_listeners: list[Callable[[], None]] = []


def on_change(listener: Callable[[], None]) -> None:
    """Call `listener` whenever packs are added or blocked, or another manager is used; it drops what it cached."""
    _listeners.append(listener)


def changed() -> None:
    """Tell all listeners."""
    for listener in _listeners:
        listener()


def kept_names(module: dict[str, Any]) -> FoundNames:
    """The FoundNames of a module, made once."""
    found: FoundNames = module.setdefault("_kept_names", FoundNames(module))
    return found


class FoundNames:
    """Names that a module's `__getattr__` found, kept as its globals until packs change: the next use asks nobody.

    Args:
        module: The module's `globals()`.
    """

    def __init__(self, module: dict[str, Any]) -> None:
        self._module = module
        self._names: set[str] = set()
        self._listens = False

    def keep(self, name: str, found: Any) -> Any:
        """Keep what was found under a name, and return it."""
        if not self._listens:
            on_change(self._forget)
            self._listens = True
        self._names.add(name)
        self._module[name] = found
        return found

    def _forget(self) -> None:
        for name in self._names:
            self._module.pop(name, None)
        self._names.clear()
