"""OpVersion: the history of an op's signature; a program says which version it was saved with."""

from __future__ import annotations

from dataclasses import field
from typing import Any, Self

from oprack.records import dataclass


@dataclass
class OpVersion:
    """Checkpoints of an op, in order; its version number is their count (an op without any has version 0)."""

    op_type: str
    checkpoints: list[tuple[str, list[tuple[str, str, Any]]]] = field(default_factory=list)

    def checkpoint(self, note: str, *changes: tuple[str, str, Any]) -> Self:
        """Add a version.

        Args:
            note: What changed, in words.
            changes: ("new_attr" | "new_input" | "new_output" | "modify_attr" | "bugfix", name, value).

        Returns:
            The history itself.
        """
        self.checkpoints.append((note, list(changes)))
        return self

    @property
    def version(self) -> int:
        """The number of the latest version: how many checkpoints there are."""
        return len(self.checkpoints)
