"""even_batches: as many batches on each rank as the rank with the fewest has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

import numpy as np
from oprack.parallel.communicator import Communicator
from oprack.parallel.world import world

T = TypeVar("T")


def even_batches(batches: Iterable[T], communicator: Communicator | None = None) -> Iterator[T]:
    """The batches of this rank for as long as every rank has one; collective, one small message a batch.

    A rank that goes on while another has come to the end of its data waits for it in the next sum of gradients.

    Args:
        batches: Of this rank.
        communicator: The ranks; default: all.

    Yields:
        The batches.
    """
    ranks = communicator or world()
    for batch in batches:
        if not ranks.all_reduce(np.ones(1, np.uint8), "min")[0]:
            return
        yield batch
    ranks.all_reduce(np.zeros(1, np.uint8), "min")
