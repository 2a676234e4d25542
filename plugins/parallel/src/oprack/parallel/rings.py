"""Rings: how programs that Paddle wrote for several trainers name groups of ranks."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError, NotFoundError
from oprack.parallel.communicator import Communicator
from oprack.parallel.world import world


def ring(number: int) -> Communicator:
    """The communicator of a ring.

    Args:
        number: 0 for all ranks; others are opened by `open_ring`.

    Returns:
        The communicator.

    Raises:
        NotFoundError: The ring was not opened.
    """
    here = world()
    rings: dict[int, Communicator] = here.__dict__.setdefault("rings", {0: here})
    if number not in rings:
        raise NotFoundError(
            f"ring {number} was not opened; open are {sorted(rings)}. Ring 0 is all ranks; give another one its ranks "
            f"by oprack.parallel.open_ring({number}, ranks)"
        )
    return rings[number]


def ring_number(group: Communicator) -> int:
    """The number by which programs name a communicator of this world; it is opened under a new one if it has none.

    Args:
        group: The communicator.

    Returns:
        The number, the same on all ranks that asked for the same communicators in the same order.
    """
    here = world()
    rings: dict[int, Communicator] = here.__dict__.setdefault("rings", {0: here})
    for number, one in rings.items():
        if one is group:
            return number
    number = max(rings) + 1
    rings[number] = group
    return number


def open_ring(number: int, ranks: list[int] | None = None) -> Communicator:
    """Open a ring for programs whose ops have this `ring_id`; every rank of the world must call it.

    Args:
        number: The ring's id.
        ranks: The ranks in it, in order; default: all. Ranks that are not named form a ring of their own under this id.

    Returns:
        The communicator of this rank's ring.
    """
    here = world()
    chosen = list(range(here.size)) if ranks is None else list(ranks)
    inside = here.rank in chosen
    key = chosen.index(here.rank) if inside else here.rank
    size = len(chosen) if inside else here.size - len(chosen)
    found = here.split(int(inside), key, f"ring {number}", size)
    here.__dict__.setdefault("rings", {0: here})[number] = found
    return found


def join_ring(number: int, group: str, rank: int, size: int) -> Communicator:
    """Open a ring as programs do, in which each rank says which group it is in; every rank of the world must call it.

    Args:
        number: The ring's id.
        group: A text that all ranks of one group give, and no others.
        rank: This rank in the group.
        size: How many ranks the program was written for.

    Returns:
        The communicator of this rank's ring.

    Raises:
        InvalidArgumentError: Another number of ranks gives this group.
    """
    here = world()
    facts = here.gather_facts([number, group])
    found = facts.count([number, group])
    if found != size:
        raise InvalidArgumentError(
            f"ring {number}: the program was written for {size} ranks, but {found} of {here.size} open this ring; "
            "start as many as the program was written for (oprack launch -n ...), each with its own program"
        )
    known: dict[tuple[int, str], Communicator] = here.__dict__.setdefault("joined", {})
    if (number, group) not in known:  # the same on all of its ranks, which ran the same program before
        known[number, group] = here.split(facts.index([number, group]), rank, f"ring {number}", size)
    here.__dict__.setdefault("rings", {0: here})[number] = known[number, group]
    return known[number, group]
