"""Rings: how programs that Paddle wrote for several trainers name groups of ranks."""

from __future__ import annotations

from oprack.errors import NotFoundError
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
    found = here.split(int(inside), key, f"ring {number}")
    here.__dict__.setdefault("rings", {0: here})[number] = found
    return found
