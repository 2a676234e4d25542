"""What partial_concat and partial_sum share: the same columns of several matrices."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, dtype_of

START_INDEX = Attr(0, "First column; negative counts from the end.")
LENGTH = Attr(-1, "How many columns; -1 for all behind the first.")


class Partial(OpDef):
    """An op on the columns start_index to start_index + length of several matrices."""

    X = Input("Matrices of one shape.", duplicable=True)


class PartialGrad(GradOpDef, reads="X", shape_of="X"):
    """Gradient of a Partial: zeros in the columns that were not read."""

    expected_kernel_type = dtype_of("Out@GRAD")


def columns_of(width: int, start: int, length: int) -> slice:
    """The columns of a matrix of that width."""
    start += width if start < 0 else 0
    return slice(start, width if length < 0 else start + length)


def partial_dims(ctx: InferShapeContext) -> tuple[int, int]:
    """(rows, columns that are read), -1 for what is not known. Raises InvalidArgumentError for columns beyond X."""
    shapes = ctx.dims("X")
    ctx.require(
        all(len(s) == 2 and s == shapes[0] for s in shapes),
        f"X has tensors of shapes {[list(s) for s in shapes]}; expected matrices of one shape",
    )
    (rows, width), start, length = shapes[0], ctx.attr("start_index"), ctx.attr("length")
    if width < 0:
        return rows, length if length >= 0 else -1
    columns = columns_of(width, start, length)
    ctx.require(
        -width <= start < max(width, 1) and columns.stop <= width,
        f"start_index is {start} and length {length} but X has shape {list(shapes[0])}; expected columns within X",
    )
    return rows, columns.stop - columns.start
