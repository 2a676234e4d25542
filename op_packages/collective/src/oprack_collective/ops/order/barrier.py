"""barrier: all of the op but its kernel."""

from __future__ import annotations

from oprack_collective.ops._attrs import RING_ID
from oprack_collective.ops._like import Like


class Barrier(Like, type="barrier"):
    r"""$$Out = X$$ on each rank of the ring, once all of them are here."""

    ring_id = RING_ID
