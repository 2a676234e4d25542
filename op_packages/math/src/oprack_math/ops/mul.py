"""mul: the product of two tensors flattened to matrices, with its first and second gradient."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.families import USE_MKLDNN
from oprack.op.sbp import SbpContext, Signature, factors, letters

from oprack_math.ops._attrs import FORCE_FP32_OUTPUT
from oprack_math.ops._broadcast import DoubleGrad


def _size(dims: tuple[int, ...]) -> int:
    if -1 in dims:
        return -1
    size = 1
    for d in dims:
        size *= d
    return size


class Mul(OpDef, type="mul"):
    r"""$$Out = X Y$$ of matrices whose rows are the first x_num_col_dims dims of X and y_num_col_dims dims of Y."""

    X = Input("Tensor of rank above x_num_col_dims.")
    Y = Input("Tensor of rank above y_num_col_dims.")
    Out = Output("The rows' dims of X, then the columns' dims of Y; LoD of X.")
    x_num_col_dims = Attr(1, "Dims of X that are the rows of its matrix; the others are the columns.").at_least(1)
    y_num_col_dims = Attr(1, "Dims of Y that are the rows of its matrix; the others are the columns.").at_least(1)
    force_fp32_output = FORCE_FP32_OUTPUT
    scale_out = Attr(1.0, "Scale of Out in a quantised model.", extra=True)
    scale_x = Attr(1.0, "Scale of X in a quantised model.", extra=True)
    scale_y = Attr([1.0], "Scales of Y in a quantised model.", extra=True)
    use_mkldnn = USE_MKLDNN

    def sbp(ctx: SbpContext) -> list[Signature]:
        nx, ny = ctx.attr("x_num_col_dims"), ctx.attr("y_num_col_dims")
        xs, ys = ctx.dim("X"), ctx.dim("Y")
        # Of what is multiplied, only the first dim of each may be split, and only where both sides have the same.
        k = ["k"] if xs[nx] == ys[0] else [None]
        x = [*letters(nx), *k, *[None] * (len(xs) - nx - 1)]
        y = [*k, *[None] * (ny - 1), *letters(len(ys) - ny, "p")]
        return factors({"X": x, "Y": y}, {"Out": [*x[:nx], *y[ny:]]}, linear=(("X",), ("Y",)))

    def infer_shape(ctx: InferShapeContext) -> None:
        x, y = ctx.dim("X"), ctx.dim("Y")
        nx, ny = ctx.attr("x_num_col_dims"), ctx.attr("y_num_col_dims")
        for slot, dims, n in (("X", x, nx), ("Y", y, ny)):
            ctx.require(
                len(dims) > n,
                f"{slot} has shape {list(dims)} and {slot.lower()}_num_col_dims is {n}; expected a rank above {n}",
            )
        columns, rows = _size(x[nx:]), _size(y[:ny])
        ctx.require(
            columns == rows or -1 in (columns, rows),
            f"X has shape {list(x)}, as a matrix {columns} columns, and Y {list(y)}, as a matrix {rows} rows "
            f"(x_num_col_dims {nx}, y_num_col_dims {ny}); expected as many columns as rows",
        )
        ctx.set_dim("Out", (*x[:nx], *y[ny:]))
        ctx.share_lod("X", "Out")


class MulGrad(GradOpDef, of=Mul, reads="X Y"):
    r"""$$X@GRAD = Out@GRAD\, Y^T,\quad Y@GRAD = X^T Out@GRAD$$ on the flattened matrices."""


class MulGradGrad(
    DoubleGrad,
    of=MulGrad,
    reads="X Y Out@GRAD X@GRAD@GRAD? Y@GRAD@GRAD?",
    grad_names={"X": "DX", "Y": "DY"},
    attrs="x_num_col_dims y_num_col_dims",
):
    r"""$$DDOut = DDX\,Y + X\,DDY,\quad DX = DOut\,DDY^T,\quad DY = DDX^T DOut$$ on the flattened matrices."""
