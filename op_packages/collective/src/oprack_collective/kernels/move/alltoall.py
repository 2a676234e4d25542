"""Kernel of alltoall."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, kernel

from oprack_collective.kernels._ring import NUMBERS, PLACES, ring


@kernel("alltoall", place=PLACES, dtypes=NUMBERS)
def alltoall(X: Array, *, ring_id: int, xp: ArrayModule) -> Array:
    group = ring(ring_id)
    rows, rest = divmod(len(X), group.size)
    if rest:
        raise InvalidArgumentError(
            f"op alltoall: X has {len(X)} rows; expected a number that {group.size} ranks can share"
        )
    parts = [xp.ascontiguousarray(X[k * rows : (k + 1) * rows]) for k in range(group.size)]
    return xp.concatenate(group.all_to_all(parts, [parts[0].shape] * group.size))
