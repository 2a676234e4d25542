"""Kernels of ops for data that moves between ranks."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, kernel

from oprack_collective.kernels._ring import (
    ANY,
    NUMBERS,
    PLACES,
    columns_of_all,
    exchanged_rows,
    require_member,
    require_ranks,
    ring,
)


# all_gather -----------------------------------------------------------------------------------------------------------
@kernel("all_gather", place=PLACES, dtypes=ANY)
def all_gather(x: Array, *, ring_id: int, nranks: int, xp: ArrayModule) -> Array:
    group = ring(ring_id)
    require_ranks("all_gather", group, nranks)
    return group.all_gather(xp.ascontiguousarray(x))


# all_to_all -----------------------------------------------------------------------------------------------------------
@kernel("all_to_all", place=PLACES, dtypes=ANY)
def all_to_all(x: Array, *, ring_id: int, xp: ArrayModule) -> Array:
    return exchanged_rows("all_to_all", x, ring(ring_id), xp)


# alltoall -------------------------------------------------------------------------------------------------------------
@kernel("alltoall", place=PLACES, dtypes=NUMBERS)
def alltoall(X: Array, *, ring_id: int, xp: ArrayModule) -> Array:
    return exchanged_rows("alltoall", X, ring(ring_id), xp)


# broadcast ------------------------------------------------------------------------------------------------------------
@kernel("broadcast", place=PLACES, dtypes=(*ANY, "complex64", "complex128"))
def broadcast(x: Array, *, ring_id: int, root: int) -> Array:
    return ring(ring_id).broadcast(x, root)


# c_allgather ----------------------------------------------------------------------------------------------------------
@kernel("c_allgather", place=PLACES, dtypes=ANY)
def c_allgather(X: Array, *, ring_id: int, nranks: int, xp: ArrayModule) -> Array:
    group = ring(ring_id)
    require_ranks("c_allgather", group, nranks)
    return group.all_gather(xp.ascontiguousarray(X))


# c_broadcast ----------------------------------------------------------------------------------------------------------
@kernel("c_broadcast", place=PLACES, dtypes=ANY)
def c_broadcast(X: Array, *, ring_id: int, root: int) -> Array:
    return ring(ring_id).broadcast(X, root)


# c_concat -------------------------------------------------------------------------------------------------------------
@kernel("c_concat", place=PLACES, dtypes=NUMBERS)
def c_concat(X: Array, *, ring_id: int, nranks: int, xp: ArrayModule) -> Array:
    group = ring(ring_id)
    require_ranks("c_concat", group, nranks)
    return columns_of_all(X, group, xp)


# c_reducescatter ------------------------------------------------------------------------------------------------------
@kernel("c_reducescatter", place=PLACES, dtypes=NUMBERS)
def c_reducescatter(X: Array, *, ring_id: int, nranks: int, xp: ArrayModule) -> Array:
    group = ring(ring_id)
    require_ranks("c_reducescatter", group, nranks)
    return group.reduce_scatter(xp.ascontiguousarray(X), [len(X) // nranks] * nranks)


# c_scatter ------------------------------------------------------------------------------------------------------------
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


# c_split --------------------------------------------------------------------------------------------------------------
@kernel("c_split", place=PLACES, dtypes=NUMBERS)
def c_split(X: Array, *, rank: int, nranks: int) -> Array:
    size = X.shape[-1] // nranks
    return X[..., rank * size : (rank + 1) * size].copy()


# dist_concat ----------------------------------------------------------------------------------------------------------
@kernel("dist_concat", place=PLACES, dtypes=ANY)
def dist_concat(x: Array, *, ring_id: int, nranks: int, xp: ArrayModule) -> Array:
    group = ring(ring_id)
    require_ranks("dist_concat", group, nranks)
    return columns_of_all(x, group, xp)


# partial_allgather ----------------------------------------------------------------------------------------------------
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
