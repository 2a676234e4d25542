"""Kernels of ops for which op runs before which, and rings of ranks."""

from __future__ import annotations

from oprack.kernel import Array, kernel
from oprack.tensor import ShapeOnly

from oprack_collective.kernels._ring import ANY, PLACES, ring


# barrier --------------------------------------------------------------------------------------------------------------
@kernel("barrier", place=PLACES, dtypes=("int32",))
def barrier(X: Array, *, ring_id: int) -> Array:
    ring(ring_id).barrier()
    return X.copy()


# c_sync_calc_stream ---------------------------------------------------------------------------------------------------
@kernel("c_sync_calc_stream", place=PLACES, dtypes=ANY, view=True)
def c_sync_calc_stream(X: Array) -> Array:
    return X


# c_sync_comm_stream ---------------------------------------------------------------------------------------------------
@kernel("c_sync_comm_stream", place=PLACES, dtypes=ANY)
def c_sync_comm_stream(X: list[Array]) -> list[Array]:
    return [x.copy() for x in X]


# c_wait_comm ----------------------------------------------------------------------------------------------------------
@kernel("c_wait_comm", place=PLACES, dtypes=ANY)
def c_wait_comm(X: list[Array]) -> list[Array]:
    return [x.copy() for x in X]


# c_wait_compute -------------------------------------------------------------------------------------------------------
@kernel("c_wait_compute", place=PLACES, dtypes=ANY)
def c_wait_compute(X: list[Array]) -> list[Array]:
    return [x.copy() for x in X]


# depend ---------------------------------------------------------------------------------------------------------------
@kernel("depend", place=PLACES, dtypes=ANY, view=True)
def depend(X: Array, Dep: list[ShapeOnly]) -> Array:
    return X
