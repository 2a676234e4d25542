"""matmul_v2, with gradients to third order."""

from __future__ import annotations

from oprack.op import Attr, GradOp, GradOpDef, Input, OpDef, Output
from oprack.op.families import MKLDNN_DATA_TYPE, USE_MKLDNN, like

from oprack_math.ops._elementwise import binary_grad
from oprack_math.ops._matmul import product_dims

_TRANS_X = Attr(False, "Swap the last two dims of X; a 1-D X stays.")
_TRANS_Y = Attr(False, "Swap the last two dims of Y; a 1-D Y stays.")


class MatmulV2(OpDef, type="matmul_v2"):
    r"""$$Out = X Y$$ with batch dims that broadcast; a 1-D X is a row, a 1-D Y a column."""

    X = Input("Tensor of rank 1 or more.")
    Y = Input("Tensor of rank 1 or more.")
    Out = Output("The product; no LoD.")
    trans_x = _TRANS_X
    trans_y = _TRANS_Y
    mkldnn_data_type = MKLDNN_DATA_TYPE
    use_mkldnn = USE_MKLDNN
    make_grad = binary_grad

    def infer_shape(ctx):
        ctx.set_dim("Out", product_dims(ctx, ctx.dim("X"), ctx.dim("Y"), ctx.attr("trans_x"), ctx.attr("trans_y")))


class MatmulV2Grad(GradOpDef, type="matmul_v2_grad"):
    r"""$$X@GRAD = Out@GRAD\, Y^T,\quad Y@GRAD = X^T Out@GRAD$$ summed over broadcast batch dims."""

    X = Input("Input of the forward op.")
    Y = Input("Input of the forward op.")
    Out_grad = Input("Gradient of Out.")
    X_grad = Output("Gradient of X.")
    Y_grad = Output("Gradient of Y.")
    trans_x = _TRANS_X
    trans_y = _TRANS_Y
    mkldnn_data_type = MKLDNN_DATA_TYPE
    use_mkldnn = USE_MKLDNN

    def infer_shape(ctx):
        like(ctx, [("X@GRAD", "X"), ("Y@GRAD", "Y")])

    def make_grad(fwd):
        return GradOp(
            "matmul_v2_grad_grad",
            X=fwd.input("X"),
            Y=fwd.input("Y"),
            grad_out=fwd.input("Out@GRAD"),
            grad_x_grad=fwd.output_grad("X@GRAD") if fwd.has_output("X@GRAD") else None,
            grad_y_grad=fwd.output_grad("Y@GRAD") if fwd.has_output("Y@GRAD") else None,
            X_grad=fwd.input_grad("X"),
            Y_grad=fwd.input_grad("Y"),
            grad_out_grad=fwd.input_grad("Out@GRAD"),
            attrs=fwd.attrs,
        )


class MatmulV2GradGrad(GradOpDef, type="matmul_v2_grad_grad"):
    r"""With $d$ = grad_out, $e$ = grad_x@GRAD and $f$ = grad_y@GRAD, each zero where absent:

    $$grad\_out@GRAD = e Y + X f,\quad X@GRAD = d f^T,\quad Y@GRAD = e^T d$$
    """

    X = Input("Input of the forward op.")
    Y = Input("Input of the forward op.")
    grad_out = Input("Gradient of Out.")
    grad_x_grad = Input("Gradient of X@GRAD.", dispensable=True)
    grad_y_grad = Input("Gradient of Y@GRAD.", dispensable=True)
    X_grad = Output("Gradient of X.")
    Y_grad = Output("Gradient of Y.")
    grad_out_grad = Output("Gradient of Out@GRAD.")
    trans_x = _TRANS_X
    trans_y = _TRANS_Y
    mkldnn_data_type = MKLDNN_DATA_TYPE
    use_mkldnn = USE_MKLDNN

    def infer_shape(ctx):
        like(ctx, [("X@GRAD", "X"), ("Y@GRAD", "Y"), ("grad_out@GRAD", "grad_out")])

    def make_grad(fwd):
        def given(slot):
            return fwd.input(slot) if fwd.has_input(slot) else None

        def flowing(slot):
            return fwd.output_grad(slot) if fwd.has_output(slot) else None

        slots = {
            "X": fwd.input("X"),
            "Y": fwd.input("Y"),
            "grad_out": fwd.input("grad_out"),
            "grad_grad_x": given("grad_x@GRAD"),
            "grad_grad_y": given("grad_y@GRAD"),
            "grad_x@GRAD": flowing("X@GRAD"),
            "grad_y@GRAD": flowing("Y@GRAD"),
            "grad_grad_out@GRAD": flowing("grad_out@GRAD"),
            "X@GRAD": fwd.input_grad("X"),
            "Y@GRAD": fwd.input_grad("Y"),
            "grad_out@GRAD": fwd.input_grad("grad_out"),
            "grad_grad_x@GRAD": fwd.input_grad("grad_x@GRAD") if fwd.has_input("grad_x@GRAD") else None,
            "grad_grad_y@GRAD": fwd.input_grad("grad_y@GRAD") if fwd.has_input("grad_y@GRAD") else None,
        }
        return GradOp("matmul_v2_triple_grad", attrs=fwd.attrs, slots=slots)


class MatmulV2TripleGrad(GradOpDef, type="matmul_v2_triple_grad"):
    r"""With $d$ = grad_out, $e, f$ = grad_grad_x, grad_grad_y, $a, b, c$ = grad_x, grad_y, grad_grad_out @GRAD:

    $$X@GRAD = c f^T,\quad Y@GRAD = e^T c,\quad d@GRAD = a f + e b$$
    $$e@GRAD = c Y^T + d b^T,\quad f@GRAD = X^T c + a^T d$$
    """

    X = Input("Input of the forward op.")
    Y = Input("Input of the forward op.")
    grad_out = Input("Gradient of Out.")
    grad_grad_x = Input("Gradient of X@GRAD.", dispensable=True)
    grad_grad_y = Input("Gradient of Y@GRAD.", dispensable=True)
    grad_x_grad = Input("Gradient of the double gradient's X@GRAD.", dispensable=True)
    grad_y_grad = Input("Gradient of the double gradient's Y@GRAD.", dispensable=True)
    grad_grad_out_grad = Input("Gradient of grad_out@GRAD.", dispensable=True, name="grad_grad_out@GRAD")
    X_grad = Output("Gradient of X.")
    Y_grad = Output("Gradient of Y.")
    grad_out_grad = Output("Gradient of grad_out.")
    grad_grad_x_grad = Output("Gradient of grad_grad_x.")
    grad_grad_y_grad = Output("Gradient of grad_grad_y.")
    trans_x = _TRANS_X
    trans_y = _TRANS_Y
    mkldnn_data_type = MKLDNN_DATA_TYPE
    use_mkldnn = USE_MKLDNN

    def infer_shape(ctx):
        like(ctx, [("X@GRAD", "X"), ("Y@GRAD", "Y"), ("grad_out@GRAD", "grad_out")])
        like(ctx, [("grad_grad_x@GRAD", "X"), ("grad_grad_y@GRAD", "Y")])
