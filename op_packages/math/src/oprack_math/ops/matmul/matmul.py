"""matmul, the op of programs before 2.0, with its first and second gradient."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, OpVersion, Output
from oprack.op.families import MKLDNN_DATA_TYPE, USE_MKLDNN, USE_QUANTIZER
from oprack.op.sbp import SbpContext, Signature, factors, product_names

from oprack_math.ops._attrs import FORCE_FP32_OUTPUT, SCALE_OUT, SCALE_X, SCALE_Y
from oprack_math.ops._broadcast import DoubleGrad
from oprack_math.ops.matmul._family import product_dims


def _as_matrices(
    x: tuple[int, ...], y: tuple[int, ...], trans_x: bool, trans_y: bool
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """A transposed vector is a matrix here, other than in matmul_v2."""
    return ((*x, 1) if trans_x and len(x) == 1 else x), ((1, *y) if trans_y and len(y) == 1 else y)


class Matmul(OpDef, type="matmul"):
    r"""$$Out = alpha \cdot X Y$$ with batch dims that broadcast; a 1-D X is a row, a 1-D Y a column."""

    X = Input("Tensor of rank 1 or more.")
    Y = Input("Tensor of rank 1 or more.")
    Out = Output("The product, LoD of X.")
    transpose_X = Attr(False, "Swap the last two dims of X; a 1-D X becomes a column.")
    transpose_Y = Attr(False, "Swap the last two dims of Y; a 1-D Y becomes a row.")
    alpha = Attr(1.0, "Factor of the product.")
    use_mkldnn = USE_MKLDNN
    use_quantizer = USE_QUANTIZER
    mkldnn_data_type = MKLDNN_DATA_TYPE
    Scale_x = SCALE_X
    Scale_y = SCALE_Y
    Scale_out = SCALE_OUT
    force_fp32_output = FORCE_FP32_OUTPUT
    head_number = Attr(1, "Groups of X's columns and Y's rows; their products are put side by side.").at_least(1)
    versions = OpVersion("matmul").checkpoint(
        "The reshape of Y was folded into the op, as fused_matmul does.", ("delete_attr", "fused_reshape_Y", [])
    )

    def sbp(ctx: SbpContext) -> list[Signature]:
        if ctx.attr("head_number", 1) != 1 or min(len(ctx.dim("X")), len(ctx.dim("Y"))) < 2:
            return []
        x, y, out = product_names(
            ctx.dim("X"), ctx.dim("Y"), ctx.dim("Out"), ctx.attr("transpose_X"), ctx.attr("transpose_Y")
        )
        return factors({"X": x, "Y": y}, {"Out": out}, linear=(("X",), ("Y",)))

    def infer_shape(ctx: InferShapeContext) -> None:
        flags = ctx.attr("transpose_X"), ctx.attr("transpose_Y")
        # (1, n) is already the transposed Y, (k, 1) the transposed X
        x, y = _as_matrices(ctx.dim("X"), ctx.dim("Y"), *flags)
        flags = flags[0] and len(ctx.dim("X")) > 1, flags[1] and len(ctx.dim("Y")) > 1
        ctx.set_dim("Out", product_dims(ctx, x, y, *flags, ctx.attr("head_number")))
        ctx.share_lod("X", "Out")


class MatmulGrad(GradOpDef, of=Matmul, reads="X Y"):
    r"""$$X@GRAD = alpha \cdot Out@GRAD\, Y^T,\quad Y@GRAD = alpha \cdot X^T Out@GRAD$$"""


class MatmulGradGrad(
    DoubleGrad,
    of=MatmulGrad,
    reads="X Y Out@GRAD X@GRAD@GRAD? Y@GRAD@GRAD?",
    grad_names={"X": "DX", "Y": "DY"},
):
    r"""$$DDOut = alpha (DDX\,Y + X\,DDY),\quad DX = alpha \cdot DOut\,DDY^T,\quad DY = alpha \cdot DDX^T DOut$$"""
