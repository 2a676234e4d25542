"""OpVersion: the history of an op's signature; a program says which version it was saved with."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import field
from typing import Any, Self

from oprack.errors import DefinitionError, did_you_mean
from oprack.records import dataclass

CHANGES = {
    **{f"{done}_{what}": what for done in ("new", "modify", "delete") for what in ("attr", "input", "output")},
    "bugfix": "",
}
"""Kinds of changes -> what of the op they name; "" for those that name nothing."""


@dataclass
class OpVersion:
    """The history of an op; its version number is the number of checkpoints (an op without any has version 0).

    Attributes:
        op_type: The op.
        checkpoints: (what changed, the changes) for each version, in order; see `checkpoint`.
    """

    op_type: str
    checkpoints: list[tuple[str, list[tuple[str, str, Any]]]] = field(default_factory=list)

    def checkpoint(self, note: str, *changes: tuple[str, str, Any]) -> Self:
        """Add a version.

        Args:
            note: What changed, in words.
            changes: (kind, name, value) of each, where the kind is one of CHANGES: "new_attr", "modify_input",
                "delete_output", "bugfix" and so on.

        Returns:
            The history itself.

        Raises:
            DefinitionError: A change has another form, or there is no such kind.
        """
        for change in changes:
            kind = change[0] if isinstance(change, tuple) and change else change
            if not (isinstance(change, tuple) and len(change) == 3 and kind in CHANGES):
                raise DefinitionError(
                    f"OpVersion({self.op_type!r}).checkpoint({note!r}, {change!r}): expected (kind, name, value), and "
                    f"as kind one of {', '.join(CHANGES)}{did_you_mean(str(kind), CHANGES)}"
                )
        self.checkpoints.append((note, list(changes)))
        return self

    @property
    def version(self) -> int:
        """The number of the latest version: how many checkpoints there are."""
        return len(self.checkpoints)

    def unknown_names(self, attrs: Collection[str], inputs: Collection[str], outputs: Collection[str]) -> list[str]:
        """What the history names, and the op does not have.

        Args:
            attrs: The op's attributes.
            inputs: Its input slots.
            outputs: Its output slots.

        Returns:
            A text for each, such as "new_attr 'axis'"; what was deleted is not there and not meant.
        """
        known = {"attr": attrs, "input": inputs, "output": outputs}
        return [
            f"{kind} {name!r}{did_you_mean(name, known[what])}"
            for _, changes in self.checkpoints
            for kind, name, _ in changes
            if (what := CHANGES[kind]) and not kind.startswith("delete") and name not in known[what]
        ]
