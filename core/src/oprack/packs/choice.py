"""Which pack's is used where several bring the same: one rule for ops, facets, names, roles, kernels, passes, places.

First come the packs that the user prefers, in the user's order; then the core's own pack; then the distribution that
the table of homes names, or that brings the op; of an op, the distribution with which a model was saved that runs; then
the distribution whose name sorts first, so that the order of installation decides nothing. What the user did not decide
is warned of. An op is refused where nothing but names would decide: it computes whatever its pack says, and a new pack
with a name that sorts before must not change anybody's numbers.
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
SAVED_WITH = "saved with"
"""What decides between packs that bring one op, as `Settlement.decided` says: the model that runs."""


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
        saved_with: Op type -> the distribution with which a model was saved that has run.
    """

    def __init__(
        self,
        found: Iterable[FoundPack] = (),
        preferred: Sequence[str] = (),
        priorities: Mapping[str, int] | None = None,
        saved_with: Mapping[str, str] | None = None,
    ) -> None:
        self._preferred, self._saved_with = list(preferred), dict(saved_with or {})
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
        self, what: str, name: str, packs: Iterable[Pack], home: str = "", at_home: str = "to which the name belongs"
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
        decided = "user" if by_user else "home" if winner.owner in (CORE_DISTRIBUTION, home) else ""
        why = "as the user prefers it" if by_user else at_home if decided else "whose name sorts first"
        if not decided and what == "op" and (owner := self._saved_with.get(name)):
            everyone = [winner, *others]
            winner, *others = sorted(everyone, key=lambda pack: pack.owner != owner)
            decided, why = (SAVED_WITH, "with which a model was saved") if winner.owner == owner else ("", why)
        return Settlement(what, name, winner, tuple(others), by_user, why, decided)

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
        decided: By what: "user", "home", SAVED_WITH; "" where nothing but the names of distributions would.
    """

    what: str
    name: str
    winner: Pack
    others: tuple[Pack, ...]
    by_user: bool
    why: str
    decided: str = ""

    @property
    def owners(self) -> list[str]:
        """The distributions of all packs that bring it."""
        return [pack.owner for pack in (self.winner, *self.others)]
