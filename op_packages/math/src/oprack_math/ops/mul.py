"""mul: the product of two tensors flattened to matrices, with its first and second gradient."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, Input, OpDef, Output
from oprack.op.families import USE_MKLDNN, like

from oprack_math.ops._attrs import FORCE_FP32_OUTPUT
from oprack_math.ops._elementwise import binary_grad
from oprack_math.ops.matmul import MatrixDoubleGrad, matrix_double_grad

_X_COLS = Attr(1, "Dims of X that are the rows of its matrix; the others are the columns.").at_least(1)
_Y_COLS = Attr(1, "Dims of Y that are the rows of its matrix; the others are the columns.").at_least(1)
_SCALE_X = Attr(1.0, "Scale of X in a quantised model.", extra=True)
_SCALE_Y = Attr([1.0], "Scales of Y in a quantised model.", extra=True)
_SCALE_OUT = Attr(1.0, "Scale of Out in a quantised model.", extra=True)


def _size(dims):
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
    x_num_col_dims = _X_COLS
    y_num_col_dims = _Y_COLS
    force_fp32_output = FORCE_FP32_OUTPUT
    scale_out = _SCALE_OUT
    scale_x = _SCALE_X
    scale_y = _SCALE_Y
    use_mkldnn = USE_MKLDNN
    make_grad = binary_grad

    def infer_shape(ctx):
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


class MulGrad(GradOpDef, type="mul_grad"):
    r"""$$X@GRAD = Out@GRAD\, Y^T,\quad Y@GRAD = X^T Out@GRAD$$ on the flattened matrices."""

    X = Input("Input of the forward op.")
    Y = Input("Input of the forward op.")
    Out_grad = Input("Gradient of Out.")
    X_grad = Output("Gradient of X.")
    Y_grad = Output("Gradient of Y.")
    x_num_col_dims = _X_COLS
    y_num_col_dims = _Y_COLS
    force_fp32_output = FORCE_FP32_OUTPUT
    scale_out = _SCALE_OUT
    scale_x = _SCALE_X
    scale_y = _SCALE_Y
    use_mkldnn = USE_MKLDNN
    make_grad = matrix_double_grad

    def infer_shape(ctx):
        like(ctx, [("X@GRAD", "X"), ("Y@GRAD", "Y")])


class MulGradGrad(MatrixDoubleGrad, type="mul_grad_grad"):
    r"""$$DDOut = DDX\,Y + X\,DDY,\quad DX = DOut\,DDY^T,\quad DY = DDX^T DOut$$ on the flattened matrices."""

    x_num_col_dims = _X_COLS
    y_num_col_dims = _Y_COLS
