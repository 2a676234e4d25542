"""Diagonals: read, written, and made matrices of."""

from __future__ import annotations

from oprack.op import (
    Attr,
    GradOpDef,
    InferShapeContext,
    InferVarTypeContext,
    Input,
    OpDef,
    Output,
    dtype_of_attr,
    empty_grad,
    normal_axis,
)
from oprack.op.sbp import SbpContext, Signature, factors, letters
from oprack.types import AttrType

# Sizes of diagonals.
OFFSET = Attr(0, "Which diagonal: 0 the main one, positive above it.")


def diagonal_size(rows: int, columns: int, offset: int) -> int:
    """Number of elements of a diagonal; -1 where a size is not known."""
    if min(rows, columns) < 0:
        return -1
    return max(0, min(rows + min(offset, 0), columns - max(offset, 0)))


def two_axes(ctx: InferShapeContext, slot: str, first: str, second: str) -> tuple[int, int]:
    """Two different dims of an input, counted from the front, by the attributes that name them."""
    dims = ctx.dim(slot)
    ctx.require(len(dims) >= 2, f"{slot} has shape {list(dims)}; expected rank 2 or more")
    one, two = ctx.axis(slot, first), ctx.axis(slot, second)
    ctx.require(one != two, f"{first} and {second} both name dim {one} of {slot}; expected two dims")
    return one, two


class FillsDiagonal(OpDef):
    """Out is X with other values on a diagonal."""

    X = Input("Tensor of rank 2 or more.")
    Out = Output("Shape and LoD of X.")


class FillsDiagonalGrad(GradOpDef, grads_of="X", like="Out@GRAD"):
    """X@GRAD is Out@GRAD with zeros on that diagonal."""


# Places of a triangle of a matrix.
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


TRIANGLE_OFFSET = Attr(0, "Which diagonal bounds the triangle: 0 the main one, positive above it.")

DTYPE = Attr(3, "dtype of out as a number: 3 int64, 2 int32.").in_set((2, 3))


def sizes(ctx: InferShapeContext, rows: str, columns: str) -> tuple[int, int]:
    """Both sizes of the matrix, by their attributes. Raises InvalidArgumentError for a negative one."""
    found = ctx.attr(rows), ctx.attr(columns)
    ctx.require_sizes(f"[{rows}, {columns}]", found)
    ctx.require(min(found) >= 0, f"{rows} is {found[0]} and {columns} {found[1]}; expected sizes of at least 0")
    return found


# diag (Paddle 1.x): all of the op but its kernel.
class Diag(OpDef, type="diag"):
    r"""$$Out_{i,i} = Diagonal_i$$, 0 elsewhere."""

    Diagonal = Input("[n].")
    Out = Output("[n, n]; no LoD.")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", ctx.require_rank("Diagonal", 1) * 2)


class DiagEmbed(OpDef, type="diag_embed"):
    r"""$$Out_{\dots, i, \dots, i + offset, \dots} = Input_{\dots, i}$$ and 0 elsewhere; Paddle gives it no gradient."""

    Input_ = Input("Tensor of rank 1 or more, diagonals along its last dim.")
    Out = Output("Input's shape without its last dim, and two of the matrices' size as dim1 and dim2.")
    offset = OFFSET
    dim1 = Attr(-2, "Dim of Out for the rows.")
    dim2 = Attr(-1, "Dim of Out for the columns.")
    make_grad = empty_grad

    def sbp(ctx: SbpContext) -> list[Signature]:
        names = letters(len(ctx.dim("Input")) - 1)
        out = list(names)
        for axis in sorted(normal_axis(ctx.op_type, ctx.attr(a), len(names) + 2, a) for a in ("dim1", "dim2")):
            out.insert(axis, None)
        return factors({"Input": [*names, None]}, {"Out": out}, linear=(("Input",),))

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.dim("Input")
        ctx.require(len(dims) >= 1, "Input has no dims; expected rank 1 or more")
        one, two = (normal_axis(ctx.op_type, ctx.attr(a), len(dims) + 1, a) for a in ("dim1", "dim2"))
        ctx.require(one != two, f"dim1 and dim2 both name dim {one} of Out; expected two dims")
        out, size = list(dims[:-1]), -1 if dims[-1] < 0 else dims[-1] + abs(ctx.attr("offset"))
        for axis in sorted((one, two)):
            out.insert(axis, size)
        ctx.set_dim("Out", out)


# diag_v2 and its gradient.
class DiagV2(OpDef, type="diag_v2"):
    r"""Of a vector the matrix with $$Out_{i, i + offset} = X_i$$ and padding_value elsewhere; of a matrix the diagonal
    $$Out_i = X_{i, i + offset}$$"""

    X = Input("[n], [n, m], or 0-D as [1].")
    Out = Output("[n + |offset|, n + |offset|], or the length of the diagonal; no LoD.")
    offset = OFFSET
    padding_value = Attr(0.0, "What is off the diagonal of the matrix that a vector makes.")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, offset = ctx.require_rank("X", 0, 1, 2), ctx.attr("offset")
        if len(dims) == 2:
            ctx.set_dim("Out", (diagonal_size(*dims, offset),))
        else:
            size = dims[0] if dims else 1
            ctx.set_dim("Out", [-1 if size < 0 else size + abs(offset)] * 2)


class DiagV2Grad(GradOpDef, of=DiagV2, shape_of="X"):
    r"""$$X@GRAD_i = Out@GRAD_{i, i + offset}$$ of a vector; of a matrix Out@GRAD on the diagonal."""


# diagonal and its gradient.
class Diagonal(OpDef, type="diagonal"):
    r"""$$Out_{\dots, i} = Input_{\dots, i, \dots, i + offset, \dots}$$
    with i along axis1 and i + offset along axis2."""

    Input_ = Input("Tensor of rank 2 or more.")
    Out = Output("Input's shape without both dims, and the length of the diagonal; no LoD.")
    offset = OFFSET
    axis1 = Attr(0, "Dim of the rows.")
    axis2 = Attr(1, "Dim of the columns.")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, axes = ctx.dim("Input"), two_axes(ctx, "Input", "axis1", "axis2")
        size = diagonal_size(dims[axes[0]], dims[axes[1]], ctx.attr("offset"))
        ctx.set_dim("Out", [*(d for i, d in enumerate(dims) if i not in axes), size])


class DiagonalGrad(GradOpDef, of=Diagonal, shape_of="Input", linear=True):
    r"""$$Input@GRAD_{\dots, i, \dots, i + offset, \dots} = Out@GRAD_{\dots, i}$$ and 0 off the diagonal."""


# fill_diagonal and its gradient.
class FillDiagonal(FillsDiagonal, type="fill_diagonal"):
    r"""$$Out_{i, \dots, i, i + offset} = value$$ and X elsewhere. With wrap the diagonal of a matrix with more rows
    than columns begins anew below, one row further down."""

    value = Attr(0.0, "What to fill in.")
    offset = OFFSET
    wrap = Attr(False, "Begin anew below the square part of a tall matrix.")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.dim("X")
        ctx.require(len(dims) >= 2, f"X has shape {list(dims)}; expected rank 2 or more")
        equal = len({d for d in dims if d >= 0}) <= 1
        ctx.require(
            len(dims) == 2 or equal, f"X has shape {list(dims)}; expected equal dims where there are more than 2"
        )
        ctx.set_dim("Out", dims)
        ctx.share_lod("X", "Out")


class FillDiagonalGrad(FillsDiagonalGrad, of=FillDiagonal):
    """X@GRAD is Out@GRAD with zeros at the places that were filled."""


# fill_diagonal_tensor and its gradient.
class FillDiagonalTensor(FillsDiagonal, type="fill_diagonal_tensor"):
    r"""$$Out_{\dots, i, \dots, i + offset, \dots} = Y_{\dots, i}$$ and X elsewhere; Y gets no gradient,
    as in Paddle."""

    X = Input("Tensor of rank 2 or more.")
    Y = Input("X's shape without both dims, and the length of the diagonal.")
    Out = Output("Shape and LoD of X.")
    offset = Attr(0, "Which diagonal: 0 the main one, positive above it.", type=AttrType.LONG)
    dim1 = Attr(0, "Dim of the rows.")
    dim2 = Attr(1, "Dim of the columns.")
    inplace = {"X": "Out"}

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, axes = ctx.dim("X"), two_axes(ctx, "X", "dim1", "dim2")
        size = diagonal_size(dims[axes[0]], dims[axes[1]], ctx.attr("offset"))
        ctx.require_dims("Y", [*(d for i, d in enumerate(dims) if i not in axes), size], why=f"for X {list(dims)}")
        ctx.set_dim("Out", dims)
        ctx.share_lod("X", "Out")


class FillDiagonalTensorGrad(FillsDiagonalGrad, of=FillDiagonalTensor):
    """X@GRAD is Out@GRAD with zeros on the diagonal."""


class TrilIndices(Triangle, type="tril_indices"):
    r"""$$out = \{(i, j) : j \le i + offset\}$$ of a matrix [rows, cols]."""

    rows = Attr(0, "Rows of the matrix.")
    cols = Attr(0, "Columns of the matrix.")
    offset = TRIANGLE_OFFSET
    dtype = DTYPE

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("out", (2, places_below(*sizes(ctx, "rows", "cols"), ctx.attr("offset"))))


class TriuIndices(Triangle, type="triu_indices"):
    r"""$$out = \{(i, j) : j \ge i + offset\}$$ of a matrix [row, col]."""

    row = Attr(0, "Rows of the matrix.")
    col = Attr(0, "Columns of the matrix.")
    offset = TRIANGLE_OFFSET
    dtype = DTYPE

    def infer_shape(ctx: InferShapeContext) -> None:
        rows, columns = sizes(ctx, "row", "col")
        ctx.set_dim("out", (2, rows * columns - places_below(rows, columns, ctx.attr("offset") - 1)))
