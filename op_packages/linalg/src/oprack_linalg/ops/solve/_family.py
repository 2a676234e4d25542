"""Shapes of systems of equations with many right-hand sides."""

from __future__ import annotations

from oprack.op import InferShapeContext

from oprack_linalg.ops._shapes import Dims, joined_batch, matrix_dims, square_dims


def solution_dims(ctx: InferShapeContext, matrix: str, right: str) -> Dims:
    """Shape of the solution of a system, batch dims broadcast. Raises InvalidArgumentError when sizes don't fit."""
    a, b = square_dims(ctx, matrix), matrix_dims(ctx, right)
    ctx.require(
        a[-1] == b[-2] or -1 in (a[-1], b[-2]),
        f"{matrix} has shape {list(a)} and {right} {list(b)}; expected as many rows of {right} as {matrix} has columns",
    )
    x, y = (a, b) if matrix == "X" else (b, a)
    return (*joined_batch(ctx, x[:-2], y[:-2]), max(a[-1], b[-2]), b[-1])
