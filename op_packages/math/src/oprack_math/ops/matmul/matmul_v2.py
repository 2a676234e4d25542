"""matmul_v2, with gradients to third order."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.families import MKLDNN_DATA_TYPE, USE_MKLDNN
from oprack.op.sbp import SbpContext, Signature, factors, product_names

from oprack_math.ops.matmul._family import product_dims


class MatmulV2(OpDef, type="matmul_v2"):
    r"""$$Out = X Y$$ with batch dims that broadcast; a 1-D X is a row, a 1-D Y a column."""

    X = Input("Tensor of rank 1 or more.")
    Y = Input("Tensor of rank 1 or more.")
    Out = Output("The product; no LoD.")
    trans_x = Attr(False, "Swap the last two dims of X; a 1-D X stays.")
    trans_y = Attr(False, "Swap the last two dims of Y; a 1-D Y stays.")
    mkldnn_data_type = MKLDNN_DATA_TYPE
    use_mkldnn = USE_MKLDNN

    def sbp(ctx: SbpContext) -> list[Signature]:
        x, y, out = product_names(ctx.dim("X"), ctx.dim("Y"), ctx.dim("Out"), ctx.attr("trans_x"), ctx.attr("trans_y"))
        return factors({"X": x, "Y": y}, {"Out": out}, linear=(("X",), ("Y",)))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", product_dims(ctx, ctx.dim("X"), ctx.dim("Y"), ctx.attr("trans_x"), ctx.attr("trans_y")))


class MatmulV2Grad(GradOpDef, of=MatmulV2, reads="X Y"):
    r"""$$X@GRAD = Out@GRAD\, Y^T,\quad Y@GRAD = X^T Out@GRAD$$ summed over broadcast batch dims."""


class MatmulV2GradGrad(
    GradOpDef,
    of=MatmulV2Grad,
    reads="X Y Out@GRAD X@GRAD@GRAD? Y@GRAD@GRAD?",
    names={"Out@GRAD": "grad_out", "X@GRAD": "grad_x", "Y@GRAD": "grad_y"},
):
    r"""With $d$ = grad_out, $e$ = grad_x@GRAD and $f$ = grad_y@GRAD, each zero where absent:

    $$grad\_out@GRAD = e Y + X f,\quad X@GRAD = d f^T,\quad Y@GRAD = e^T d$$
    """


class MatmulV2TripleGrad(
    GradOpDef,
    of=MatmulV2GradGrad,
    type="matmul_v2_triple_grad",
    like={"grad_x@GRAD": "X", "grad_y@GRAD": "Y"},
    reads="X Y grad_out grad_x@GRAD grad_y@GRAD X@GRAD@GRAD? Y@GRAD@GRAD? grad_out@GRAD@GRAD?",
    names={
        "grad_x@GRAD": "grad_grad_x",
        "grad_y@GRAD": "grad_grad_y",
        "grad_out@GRAD": "grad_grad_out",
        "X@GRAD": "grad_x",
        "Y@GRAD": "grad_y",
    },
):
    r"""With $d$ = grad_out, $e, f$ = grad_grad_x, grad_grad_y, $a, b, c$ = grad_x, grad_y, grad_grad_out @GRAD:

    $$X@GRAD = c f^T,\quad Y@GRAD = e^T c,\quad d@GRAD = a f + e b$$
    $$e@GRAD = c Y^T + d b^T,\quad f@GRAD = X^T c + a^T d$$
    """
