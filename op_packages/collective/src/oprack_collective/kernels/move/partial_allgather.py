"""Kernel of partial_allgather."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, kernel

from oprack_collective.kernels._ring import NUMBERS, PLACES, require_ranks, ring


@kernel("partial_allgather", place=PLACES, dtypes=NUMBERS)
def partial_allgather(X: Array, *, ring_id: int, nranks: int, rank: int, xp: ArrayModule) -> Array:
    group = ring(ring_id)
    require_ranks("partial_allgather", group, nranks)
    size, rest = divmod(X.size, nranks)
    if rest:
        raise InvalidArgumentError(
            f"op partial_allgather: X has {X.size} elements; expected a number that {nranks} ranks can share"
        )
    part = xp.ascontiguousarray(X.reshape(-1)[rank * size : (rank + 1) * size])
    return group.all_gather(part).reshape(X.shape)
