"""Kernel of unique_consecutive."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_tensor.dims import product


@kernel("unique_consecutive", place=("cpu", "cuda"))
def unique_consecutive(
    X: Array, *, return_inverse: bool, return_counts: bool, axis: list[int], dtype: int, xp: ArrayModule
) -> tuple[Array, Array, Array]:
    """The first of each run, the number of the run of each element, and the lengths of the runs."""
    kind = xp.int32 if dtype == 2 else xp.int64
    along = axis[0] if axis else 0
    x = X if axis else X.reshape(-1)
    parts = xp.moveaxis(x, along, 0)
    rows = parts.reshape(len(parts), product(parts.shape[1:]))
    begins = xp.ones(len(parts), bool)
    begins[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    first = xp.nonzero(begins)[0]
    ends = xp.concatenate([first[1:], xp.asarray([len(parts)])]) if len(first) else first
    return (
        xp.take(x, first, axis=along),
        (xp.cumsum(begins) - 1).astype(kind) if return_inverse else xp.zeros(0, kind),
        (ends - first).astype(kind) if return_counts else xp.zeros(0, kind),
    )
