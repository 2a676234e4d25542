"""Places of a triangle of a matrix."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, InferVarTypeContext, OpDef, Output, dtype_of_attr, empty_grad


def places_below(rows: int, columns: int, offset: int) -> int:
    """Number of elements on a diagonal and below it."""
    return sum(max(0, min(columns, i + offset + 1)) for i in range(rows))


class Triangle(OpDef):
    """Rows and columns of all places of a triangle, in row-major order."""

    out = Output("[2, number of places]: the rows, then the columns.")
    make_grad = empty_grad
    expected_kernel_type = dtype_of_attr("dtype")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("out", ctx.attr("dtype"))


OFFSET = Attr(0, "Which diagonal bounds the triangle: 0 the main one, positive above it.")
DTYPE = Attr(3, "dtype of out as a number: 3 int64, 2 int32.").in_set((2, 3))


def sizes(ctx: InferShapeContext, rows: str, columns: str) -> tuple[int, int]:
    """Both sizes of the matrix, by their attributes. Raises InvalidArgumentError for a negative one."""
    found = ctx.attr(rows), ctx.attr(columns)
    ctx.require_sizes(f"[{rows}, {columns}]", found)
    ctx.require(min(found) >= 0, f"{rows} is {found[0]} and {columns} {found[1]}; expected sizes of at least 0")
    return found
