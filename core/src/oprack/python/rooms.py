"""Rooms of the package `oprack` that other distributions bring, such as `oprack.nn`: where they lie, who brings them.

A distribution brings one by a folder `oprack/<room>` in its wheel, without `oprack/__init__.py`. Installed wheels share
one folder; those that are installed editable have folders of their own on `sys.path`, as namespace packages have.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # as in oprack/__init__.py
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


def folders(own: Iterable[str]) -> list[str]:
    """The folders of the package, of which the core's own come first.

    Args:
        own: Those of the core.

    Returns:
        They, and each folder `oprack` on `sys.path` that is no package of its own.
    """
    found = list(own)
    for entry in sys.path:
        folder = os.path.join(entry, "oprack")
        if entry and os.path.isdir(folder) and folder not in found:
            if not os.path.exists(os.path.join(folder, "__init__.py")):
                found.append(folder)
    return found


class AbsentRoomError(ModuleNotFoundError):
    """A room of the package is not installed; the text says which distribution brings it."""


class AbsentRooms:
    """The last finder of imports: says which distribution brings a room that is not installed, and finds modules of
    other libraries whose names lead to ours, such as `oprack.optim`.
    """

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: object = None) -> ModuleSpec | None:
        """Raise AbsentRoomError for a room of ours that no installed distribution brings; find doors, else nothing."""
        package, _, room = name.partition(".")
        if package != "oprack" or not room:
            return None
        import importlib

        if room == "names":  # the room with the table
            distribution = "oprack-names"
        else:
            distribution = importlib.import_module("oprack.names.tables").home("rooms", room)
        if distribution:
            # Python passes over an error that names the module itself: `from oprack import nn` would not say why.
            raise AbsentRoomError(
                f"no module {name!r}: the distribution {distribution} brings it; pip install {distribution}, or "
                '"oprack[cpu]" for everything on the CPU',
                name=distribution.replace("-", "_"),
            )
        spellings = importlib.import_module("oprack.names.spellings")
        if spellings.door_target(room) is None:
            return None
        from importlib.machinery import ModuleSpec

        return ModuleSpec(name, AbsentRooms, is_package=True)  # type: ignore[arg-type]

    @staticmethod
    def create_module(spec: ModuleSpec) -> ModuleType:
        """The module of a door, as loaders make one."""
        import importlib

        spellings = importlib.import_module("oprack.names.spellings")
        room = spec.name.partition(".")[2]
        door: ModuleType = spellings.Door(room, spellings.door_target(room))
        return door

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        """Nothing is run: names are looked up when they are asked for."""
