"""The list of passes that a Config lets run, as paddle.inference's pass builder shows it."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.inference.no_effect import say_once


class PassBuilder:
    """Names of passes in order.

    The client's changes are kept apart from the list that they are made to, which may still change with the Config.

    Args:
        passes: The names.

    Attributes:
        deleted: Names that the client took out.
        debug: Whether graphs are verified after every pass.
    """

    def __init__(self, passes: Sequence[str] = ()) -> None:
        self._selected = list(passes)
        self._known = set(passes)
        self._added: list[tuple[int | None, str]] = []
        self.deleted: set[str] = set()
        self.debug = False

    def show(self, selected: Sequence[str], known: Sequence[str]) -> PassBuilder:
        """Take the passes that the Config selects now, of all that there are; returns itself."""
        self._selected, self._known = list(selected), set(known)
        return self

    def changes(self) -> list[list[object]]:
        """What the client changed: the names that it took out, and [position, name] of those that it put in."""
        return [[*sorted(self.deleted)], [list(pair) for pair in self._added]]

    def all_passes(self) -> list[str]:
        """The passes that will run, in order."""
        names = [n for n in self._selected if n not in self.deleted]
        for index, name in self._added:
            names.insert(len(names) if index is None else index, name)
        return names

    def append_pass(self, name: str) -> None:
        """Add a pass at the end."""
        self._add(None, name)

    def insert_pass(self, index: int, name: str) -> None:
        """Add a pass at a position."""
        self._add(index, name)

    def _add(self, index: int | None, name: str) -> None:
        if name not in self._known:
            self._say_unknown("PassBuilder.append_pass", name, 5)
        self._added.append((index, name))

    def delete_pass(self, name: str | int, stacklevel: int = 4) -> None:
        """Take a pass out, by name or position. Said once when it is no pass of an installed pack."""
        if isinstance(name, int):
            name = self.all_passes()[name]
        known = name in self._known or any(name == added for _, added in self._added)
        self._added = [(i, n) for i, n in self._added if n != name]
        self.deleted.add(name)
        if not known:
            self._say_unknown("Config.delete_pass", name, stacklevel)

    def _say_unknown(self, setting: str, name: str, stacklevel: int) -> None:
        say_once(f"{setting} of Paddle's own passes", f"{name!r} is no pass of an installed pack", stacklevel)

    def turn_on_debug(self) -> None:
        """Verify the graph after every pass."""
        self.debug = True

    def __repr__(self) -> str:
        return f"PassBuilder({self.all_passes()})"
