"""Kernels of ops for sums and other reductions over ranks."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.parallel.sparse_rows import gather_rows
from oprack.tensor import SelectedRows

from oprack_collective.kernels._ring import ANY, NUMBERS, PLACES, REALS, REDUCTIONS, require_ranks, ring


# all_reduce -----------------------------------------------------------------------------------------------------------
@kernel("all_reduce", place=PLACES, dtypes=ANY)
def all_reduce(x: Array, *, ring_id: int, reduce_type: int) -> Array:
    return ring(ring_id).all_reduce(x, REDUCTIONS[reduce_type])


# c_allreduce_max ------------------------------------------------------------------------------------------------------
@kernel("c_allreduce_max", place=PLACES, dtypes=NUMBERS)
def c_allreduce_max(X: Array, *, ring_id: int) -> Array:
    return ring(ring_id).all_reduce(X, "max")


# c_allreduce_min ------------------------------------------------------------------------------------------------------
@kernel("c_allreduce_min", place=PLACES, dtypes=NUMBERS)
def c_allreduce_min(X: Array, *, ring_id: int) -> Array:
    return ring(ring_id).all_reduce(X, "min")


# c_allreduce_prod -----------------------------------------------------------------------------------------------------
@kernel("c_allreduce_prod", place=PLACES, dtypes=NUMBERS)
def c_allreduce_prod(X: Array, *, ring_id: int) -> Array:
    return ring(ring_id).all_reduce(X, "prod")


# c_allreduce_sum ------------------------------------------------------------------------------------------------------
@kernel("c_allreduce_sum", place=PLACES, dtypes=NUMBERS)
def c_allreduce_sum(X: Array, *, ring_id: int) -> Array:
    return ring(ring_id).all_reduce(X, "sum")


@kernel("c_allreduce_sum", dtypes=REALS)
def c_allreduce_sum_rows(X: SelectedRows, *, ring_id: int) -> SelectedRows:
    return gather_rows(X, ring(ring_id))


# c_identity -----------------------------------------------------------------------------------------------------------
@kernel("c_identity", place=PLACES, dtypes=NUMBERS)
def c_identity(X: Array) -> Array:
    return X.copy()


# c_reduce_max ---------------------------------------------------------------------------------------------------------
@kernel("c_reduce_max", place=PLACES, dtypes=NUMBERS)
def c_reduce_max(X: Array, *, ring_id: int, root_id: int) -> Array:
    group = ring(ring_id)
    total = group.all_reduce(X, "max")
    return total if group.rank == root_id else X.copy()


# c_reduce_min ---------------------------------------------------------------------------------------------------------
@kernel("c_reduce_min", place=PLACES, dtypes=NUMBERS)
def c_reduce_min(X: Array, *, ring_id: int, root_id: int) -> Array:
    group = ring(ring_id)
    total = group.all_reduce(X, "min")
    return total if group.rank == root_id else X.copy()


# c_reduce_prod --------------------------------------------------------------------------------------------------------
@kernel("c_reduce_prod", place=PLACES, dtypes=NUMBERS)
def c_reduce_prod(X: Array, *, ring_id: int, root_id: int) -> Array:
    group = ring(ring_id)
    total = group.all_reduce(X, "prod")
    return total if group.rank == root_id else X.copy()


# c_reduce_sum ---------------------------------------------------------------------------------------------------------
@kernel("c_reduce_sum", place=PLACES, dtypes=NUMBERS)
def c_reduce_sum(X: Array, *, ring_id: int, root_id: int) -> Array:
    group = ring(ring_id)
    total = group.all_reduce(X, "sum")
    return total if group.rank == root_id else X.copy()


# mp_allreduce_sum -----------------------------------------------------------------------------------------------------
@kernel("mp_allreduce_sum", place=PLACES, dtypes=NUMBERS)
def mp_allreduce_sum(X: Array, *, ring_id: int) -> Array:
    return ring(ring_id).all_reduce(X)


# reduce ---------------------------------------------------------------------------------------------------------------
@kernel("reduce", place=PLACES, dtypes=ANY)
def reduce(x: Array, *, ring_id: int, root_id: int, reduce_type: int) -> Array:
    group = ring(ring_id)
    total = group.all_reduce(x, REDUCTIONS[reduce_type])
    return total if group.rank == root_id else x.copy()


# reduce_scatter -------------------------------------------------------------------------------------------------------
@kernel("reduce_scatter", place=PLACES, dtypes=ANY)
def reduce_scatter(x: Array, *, ring_id: int, nranks: int, xp: ArrayModule) -> Array:
    group = ring(ring_id)
    require_ranks("reduce_scatter", group, nranks)
    return group.reduce_scatter(xp.ascontiguousarray(x), [len(x) // nranks] * nranks)
