"""Kernel of c_scatter."""

from __future__ import annotations

from oprack.kernel import Array, kernel

from oprack_collective.kernels._ring import NUMBERS, PLACES, require_member, require_ranks, ring


@kernel("c_scatter", place=PLACES, dtypes=NUMBERS)
def c_scatter(X: Array, *, ring_id: int, root: int, nranks: int) -> Array:
    group = ring(ring_id)
    require_ranks("c_scatter", group, nranks)
    require_member("c_scatter", "root", root, group)
    rows = len(X) // nranks
    if group.rank != root:
        return group.receive((rows, *X.shape[1:]), X.dtype, root)
    for other in range(nranks):
        if other != root:
            group.send(X[other * rows : (other + 1) * rows].copy(), other)
    return X[root * rows : (root + 1) * rows].copy()
