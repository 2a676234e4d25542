"""Shapes of batches of matrices: the last two dims are a matrix, those before them a batch."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.op import InferShapeContext

Dims = tuple[int, ...]


def matrix_dims(ctx: InferShapeContext, slot: str) -> Dims:
    """Shape of an input that has to hold matrices. Raises InvalidArgumentError for a rank below 2."""
    dims = tuple(ctx.dim(slot))
    ctx.require(
        len(dims) >= 2,
        f"{slot} has shape {list(dims)}; expected at least two dims, of which the last two are a matrix; reshape it",
    )
    return dims


def square_dims(ctx: InferShapeContext, slot: str) -> Dims:
    """Shape of an input that has to hold square matrices. Raises InvalidArgumentError for others."""
    dims = matrix_dims(ctx, slot)
    rows, columns = dims[-2:]
    ctx.require(
        rows == columns or -1 in (rows, columns),
        f"{slot} has shape {list(dims)}, matrices of {rows} rows and {columns} columns; expected square ones",
    )
    size = max(rows, columns)
    return (*dims[:-2], size, size)


def smaller(rows: int, columns: int) -> int:
    """The smaller one of two dims; -1 when either is not known yet."""
    return -1 if -1 in (rows, columns) else min(rows, columns)


def joined_batch(ctx: InferShapeContext, x: Sequence[int], y: Sequence[int]) -> Dims:
    """Batch dims of X and Y, broadcast; a dim of -1 takes the other's unless that is 1.

    Raises:
        InvalidArgumentError: They don't broadcast.
    """
    rank = max(len(x), len(y))
    pairs = zip((1,) * (rank - len(x)) + tuple(x), (1,) * (rank - len(y)) + tuple(y), strict=True)
    found = []
    for a, b in pairs:
        ctx.require(
            a == b or 1 in (a, b) or -1 in (a, b),
            f"the batch dims of X are {list(x)} and those of Y {list(y)}; expected dims that are equal or 1",
        )
        found.append(b if a == 1 else a if b == 1 else max(a, b))
    return tuple(found)
