"""Who is told when packs change: whatever keeps something that it was told of ops."""

from __future__ import annotations

from collections.abc import Callable

# Modules register when they are imported and stay for the life of the process, so nothing is ever taken out.
_listeners: list[Callable[[], None]] = []


def on_change(listener: Callable[[], None]) -> None:
    """Call `listener` whenever packs are added or blocked, or another manager is used; it drops what it cached."""
    _listeners.append(listener)


def changed() -> None:
    """Tell all listeners."""
    for listener in _listeners:
        listener()
