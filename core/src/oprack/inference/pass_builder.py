"""The list of passes that a Config lets run, as paddle.inference's pass builder shows it."""

from __future__ import annotations

from oprack.inference.no_effect import say_once


class PassBuilder:
    """Names of passes in order, and those that the client took out."""

    def __init__(self, passes: list[str] | None = None) -> None:
        self._passes = list(passes or [])
        self.deleted: set[str] = set()

    def all_passes(self) -> list[str]:
        return list(self._passes)

    def append_pass(self, name: str) -> None:
        self._passes.append(name)

    def insert_pass(self, index: int, name: str) -> None:
        self._passes.insert(index, name)

    def delete_pass(self, name: str | int) -> None:
        """Take a pass out, by name or position. Said once when it is no pass of an installed pack."""
        if isinstance(name, int):
            name = self._passes[name]
        self.deleted.add(name)
        if name in self._passes:
            self._passes = [p for p in self._passes if p != name]
        else:
            say_once("Config.delete_pass of Paddle's own passes", f"{name!r} is no pass of an installed pack", 4)

    def turn_on_debug(self) -> None:
        say_once("PassBuilder.turn_on_debug", "compare `oprack show --ops` of the program before and after")

    def __repr__(self) -> str:
        return f"PassBuilder({self._passes})"
