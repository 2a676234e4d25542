"""Which pack's is used where several bring the same: one rule for ops, facets, names, roles, kernels, passes, places.

First come the packs that the user prefers, in the user's order; then the core's own pack; then the distribution that
the table of homes names, or that brings the op; then the distribution whose name sorts first, so that the order of
installation decides nothing. Nobody's op stops because of another pack; what the user has not decided is warned of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from oprack.errors import InvalidArgumentError
from oprack.python.records import dataclass

if TYPE_CHECKING:
    from oprack.packs.installed.entry_points import FoundPack
    from oprack.packs.pack import Pack

CORE_DISTRIBUTION = "oprack"


def names(value: str) -> list[str]:
    """The names of a list such as "a, b"."""
    return [name for part in value.split(",") if (name := part.strip())]


def priorities(value: str) -> dict[str, int]:
    """The numbers of a list such as "a=10, b=-5".

    Raises:
        InvalidArgumentError: It has another form.
    """
    found = {}
    for part in names(value):
        name, equals, number = part.partition("=")
        try:
            if not equals or not name.strip():
                raise ValueError
            found[name.strip()] = int(number)
        except ValueError:
            raise InvalidArgumentError(
                f"OPRACK_PRIORITY={value!r}: {part!r} is not of the form NAME=NUMBER; expected a list such as "
                "'fast_relu=10,slow=-5': names of packs, and what is added to the priority of their kernels"
            ) from None
    return found


class Choice:
    """What the user has said about packs that bring the same thing.

    Args:
        found: All packs.
        preferred: Names of packs or distributions, the most preferred one first.
        priorities: Name of a pack or distribution -> what is added to the priority of its kernels; an attribute, too.
    """

    def __init__(
        self,
        found: Iterable[FoundPack] = (),
        preferred: Sequence[str] = (),
        priorities: Mapping[str, int] | None = None,
    ) -> None:
        self._preferred = list(preferred)
        self.priorities = dict(priorities or {})
        known = found if self._preferred else ()
        ranked = sorted((rank, f.distribution) for f in known if (rank := self._rank(f.names)) < len(self._preferred))
        self.distributions = tuple(dict.fromkeys(distribution for _, distribution in ranked))
        """Those of preferred packs, the most preferred one first."""

    def _rank(self, known_as: Iterable[str]) -> int:
        last = len(self._preferred)
        return min((self._preferred.index(n) if n in self._preferred else last for n in known_as), default=last)

    def added_priority(self, found: FoundPack) -> int:
        """What is added to the priority of a pack's kernels."""
        return sum(self.priorities.get(name, 0) for name in dict.fromkeys(found.names))

    def ordered(self, packs: Iterable[Pack], home: str = "") -> list[Pack]:
        """Packs that bring the same thing, the one whose is used first.

        Args:
            packs: The packs.
            home: The distribution to which the thing belongs, "" when none is known.
        """

        def key(pack: Pack) -> tuple[int, bool, bool, str, str]:
            owner = pack.owner
            return self._rank(pack.found.names), owner != CORE_DISTRIBUTION, owner != home, owner, pack.found.name

        return sorted(packs, key=key)

    def settle(
        self,
        what: str,
        name: str,
        packs: Iterable[Pack],
        home: str = "",
        at_home: str = "to which the name belongs",
    ) -> Settlement:
        """Choose among packs that bring the same thing.

        Args:
            what: What it is, as "op".
            name: Its name.
            packs: The packs; at least one.
            home: As for `ordered`.
            at_home: Why the pack of `home` wins, in words.
        """
        winner, *others = self.ordered(packs, home)
        by_user = self._rank(winner.found.names) < len(self._preferred)
        if by_user:
            why = "as the user prefers it"
        elif winner.owner in (CORE_DISTRIBUTION, home):
            why = at_home
        else:
            why = "whose name sorts first"
        return Settlement(what, name, winner, tuple(others), by_user, why)

    def to_dict(self) -> dict[str, object]:
        """For keys of what depends on it."""
        return {"preferred": self._preferred, "priorities": self.priorities}


@dataclass(frozen=True)
class Settlement:
    """One thing that several packs bring, and whose is used.

    Attributes:
        what: "op", "facet", "layer", "role", "pass", "place", "library", "format" or "command".
        name: Its name; of a layer with the namespace, as "layers.fc", and of a facet "make_grad of op relu".
        winner: The pack whose is used.
        others: The packs whose is not.
        by_user: Whether the user prefers the winner.
        why: Why it won, in words.
    """

    what: str
    name: str
    winner: Pack
    others: tuple[Pack, ...]
    by_user: bool
    why: str
