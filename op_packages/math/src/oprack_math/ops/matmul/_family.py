"""Shapes of matrix products."""

from __future__ import annotations

from oprack.op import InferShapeContext

from oprack_math.ops._broadcast import broadcast_dims


def product_dims(
    ctx: InferShapeContext, x: tuple[int, ...], y: tuple[int, ...], trans_x: bool, trans_y: bool, heads: int = 1
) -> tuple[int, ...]:
    """Shape of X Y, batch dims broadcast; a 1-D X is a row and a 1-D Y a column, which the result then lacks.

    heads: X's columns and Y's rows in that many groups, whose products are put side by side.
    Raises InvalidArgumentError when the inner dims differ.
    """
    ctx.require(len(x) > 0 and len(y) > 0, f"X has shape {list(x)} and Y {list(y)}; expected at least one dim in each")
    m, k = (None, x[0]) if len(x) == 1 else (x[-1], x[-2]) if trans_x else (x[-2], x[-1])
    inner, n = (y[0], None) if len(y) == 1 else (y[-1], y[-2]) if trans_y else (y[-2], y[-1])
    ctx.require(
        k == inner or -1 in (k, inner),
        f"X has shape {list(x)}{' (transposed)' if trans_x else ''} and Y {list(y)}"
        f"{' (transposed)' if trans_y else ''}; expected X's {k} columns to be as many as Y's {inner} rows",
    )
    batch = broadcast_dims(tuple(x[:-2]), tuple(y[:-2]), -1, ctx.op_type)
    if n is not None and n >= 0:
        n *= heads
    return (*batch, *(() if m is None else (m,)), *(() if n is None else (n,)))
