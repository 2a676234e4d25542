"""Shapes of products."""

from __future__ import annotations

from oprack.op import InferShapeContext

Dims = tuple[int, ...]


def dense_dims(
    ctx: InferShapeContext, x: Dims, weight: Dims, bias: Dims | None, *, rows: int = 1, of: str = "X"
) -> Dims:
    """Shape of x weight + bias.

    Args:
        ctx: The context of the rule.
        x: Shape of x, the first `rows` dims of which are rows.
        weight: Shape of the weight, a matrix.
        bias: Shape of the bias, a number for each column.
        rows: How many.
        of: The slot of x, for the error.

    Raises:
        InvalidArgumentError: They don't fit.
    """
    ctx.require(
        0 < rows < len(x), f"{of} has shape {list(x)} and {rows} of its dims are rows; expected one more at least"
    )
    ctx.require(len(weight) == 2, f"the weight has shape {list(weight)}; expected a matrix")
    columns = 1
    for d in x[rows:]:
        columns = -1 if -1 in (columns, d) else columns * d
    ctx.require(
        -1 in (columns, weight[0]) or columns == weight[0],
        f"{of} has shape {list(x)}, {columns} columns, and the weight {list(weight)}; expected as many rows there",
    )
    if bias is not None:
        ctx.require(
            bias in ((weight[1],), (1, weight[1])) or -1 in (*bias, weight[1]),
            f"the bias has shape {list(bias)}; expected [{weight[1]}] or [1, {weight[1]}], a number for each column of "
            f"the weight {list(weight)}",
        )
    return (*x[:rows], weight[1])
