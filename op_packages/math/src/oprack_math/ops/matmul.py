"""matmul, the op of programs before 2.0, with its first and second gradient."""

from __future__ import annotations

from oprack.op import Attr, GradOp, GradOpDef, Input, OpDef, OpVersion, Output
from oprack.op.families import MKLDNN_DATA_TYPE, USE_MKLDNN, USE_QUANTIZER, like

from oprack_math.ops._attrs import FORCE_FP32_OUTPUT, SCALE_OUT, SCALE_X, SCALE_Y
from oprack_math.ops._elementwise import binary_grad
from oprack_math.ops._matmul import product_dims

_TRANSPOSE_X = Attr(False, "Swap the last two dims of X; a 1-D X becomes a column.")
_TRANSPOSE_Y = Attr(False, "Swap the last two dims of Y; a 1-D Y becomes a row.")
_ALPHA = Attr(1.0, "Factor of the product.")
_HEAD_NUMBER = Attr(1, "Groups of X's columns and Y's rows; their products are put side by side.").at_least(1)


def _as_matrices(x, y, trans_x, trans_y):
    """A transposed vector is a matrix here, other than in matmul_v2."""
    return ((*x, 1) if trans_x and len(x) == 1 else x), ((1, *y) if trans_y and len(y) == 1 else y)


class Matmul(OpDef, type="matmul"):
    r"""$$Out = alpha \cdot X Y$$ with batch dims that broadcast; a 1-D X is a row, a 1-D Y a column."""

    X = Input("Tensor of rank 1 or more.")
    Y = Input("Tensor of rank 1 or more.")
    Out = Output("The product, LoD of X.")
    transpose_X = _TRANSPOSE_X
    transpose_Y = _TRANSPOSE_Y
    alpha = _ALPHA
    use_mkldnn = USE_MKLDNN
    use_quantizer = USE_QUANTIZER
    mkldnn_data_type = MKLDNN_DATA_TYPE
    Scale_x = SCALE_X
    Scale_y = SCALE_Y
    Scale_out = SCALE_OUT
    force_fp32_output = FORCE_FP32_OUTPUT
    head_number = _HEAD_NUMBER
    make_grad = binary_grad
    versions = OpVersion("matmul").checkpoint(
        "A pass may fold the reshape of Y into the op.", ("new_attr", "fused_reshape_Y", [])
    )

    def infer_shape(ctx):
        flags = ctx.attr("transpose_X"), ctx.attr("transpose_Y")
        # (1, n) is already the transposed Y, (k, 1) the transposed X
        x, y = _as_matrices(ctx.dim("X"), ctx.dim("Y"), *flags)
        flags = flags[0] and len(ctx.dim("X")) > 1, flags[1] and len(ctx.dim("Y")) > 1
        ctx.set_dim("Out", product_dims(ctx, x, y, *flags, ctx.attr("head_number")))
        ctx.share_lod("X", "Out")


class MatmulGrad(GradOpDef, type="matmul_grad"):
    r"""$$X@GRAD = alpha \cdot Out@GRAD\, Y^T,\quad Y@GRAD = alpha \cdot X^T Out@GRAD$$"""

    X = Input("Input of the forward op.")
    Y = Input("Input of the forward op.")
    Out_grad = Input("Gradient of Out.")
    X_grad = Output("Gradient of X.")
    Y_grad = Output("Gradient of Y.")
    transpose_X = _TRANSPOSE_X
    transpose_Y = _TRANSPOSE_Y
    alpha = _ALPHA
    use_mkldnn = USE_MKLDNN
    use_quantizer = USE_QUANTIZER
    mkldnn_data_type = MKLDNN_DATA_TYPE
    Scale_x = SCALE_X
    Scale_y = SCALE_Y
    Scale_out = SCALE_OUT
    force_fp32_output = FORCE_FP32_OUTPUT
    head_number = _HEAD_NUMBER

    def infer_shape(ctx):
        like(ctx, [("X@GRAD", "X"), ("Y@GRAD", "Y")])

    def make_grad(fwd):
        return matrix_double_grad(fwd)


def matrix_double_grad(fwd):
    """make_grad of matmul_grad and mul_grad."""
    return GradOp(
        fwd.type + "_grad",
        X=fwd.input("X"),
        Y=fwd.input("Y"),
        DOut=fwd.input("Out@GRAD"),
        DDX=fwd.output_grad("X@GRAD") if fwd.has_output("X@GRAD") else None,
        DDY=fwd.output_grad("Y@GRAD") if fwd.has_output("Y@GRAD") else None,
        DX=fwd.input_grad("X"),
        DY=fwd.input_grad("Y"),
        DDOut=fwd.input_grad("Out@GRAD"),
        attrs=fwd.attrs,
    )


class MatrixDoubleGrad(GradOpDef):
    """Gradient of the gradient of a product; an absent DDX or DDY counts as zero."""

    X = Input("Input of the forward op.")
    Y = Input("Input of the forward op.")
    DOut = Input("Gradient of Out.")
    DDX = Input("Gradient of X@GRAD.", dispensable=True)
    DDY = Input("Gradient of Y@GRAD.", dispensable=True)
    DX = Output("Gradient of X.")
    DY = Output("Gradient of Y.")
    DDOut = Output("Gradient of Out@GRAD.")

    def infer_shape(ctx):
        like(ctx, [("DX", "X"), ("DY", "Y"), ("DDOut", "DOut")])


class MatmulGradGrad(MatrixDoubleGrad, type="matmul_grad_grad"):
    r"""$$DDOut = alpha (DDX\,Y + X\,DDY),\quad DX = alpha \cdot DOut\,DDY^T,\quad DY = alpha \cdot DDX^T DOut$$"""

    transpose_X = _TRANSPOSE_X
    transpose_Y = _TRANSPOSE_Y
    alpha = _ALPHA
    use_mkldnn = USE_MKLDNN
    use_quantizer = USE_QUANTIZER
    mkldnn_data_type = MKLDNN_DATA_TYPE
    Scale_x = SCALE_X
    Scale_y = SCALE_Y
    Scale_out = SCALE_OUT
    force_fp32_output = FORCE_FP32_OUTPUT
    head_number = _HEAD_NUMBER
