"""Second and third gradients of element-wise arithmetic. An absent DDX or DDY counts as zero."""

from __future__ import annotations

from oprack.op import Attr, GradOp, GradOpDef, Input, Output, dtype_of
from oprack.op.families import MKLDNN_DATA_TYPE, USE_MKLDNN, USE_QUANTIZER, like

from oprack_math.ops._attrs import SCALE_OUT, SCALE_X, SCALE_Y

_AXIS = Attr(-1, "As in the forward op.")


class ElementwiseAddGradGrad(GradOpDef, type="elementwise_add_grad_grad"):
    r"""$$DDOut = DDX + DDY$$"""

    Y = Input("Input of the forward op; not read.")
    DOut = Input("Gradient of Out; only its shape is read.")
    DDX = Input("Gradient of X@GRAD.", dispensable=True)
    DDY = Input("Gradient of Y@GRAD.", dispensable=True)
    DDOut = Output("Gradient of Out@GRAD, shape of DOut.")
    axis = _AXIS
    Scale_out = SCALE_OUT
    Scale_x = SCALE_X
    Scale_y = SCALE_Y
    mkldnn_data_type = MKLDNN_DATA_TYPE
    use_mkldnn = USE_MKLDNN
    use_quantizer = USE_QUANTIZER
    inplace = {"DDX": "DDOut"}
    no_need_buffer_vars = ("Y", "DOut")
    expected_kernel_type = dtype_of("DOut")

    def infer_shape(ctx):
        like(ctx, [("DDOut", "DOut")])

    def make_grad(fwd):
        return GradOp(
            "elementwise_add_triple_grad",
            DDX=fwd.input("DDX") if fwd.has_input("DDX") else None,
            DDY=fwd.input("DDY") if fwd.has_input("DDY") else None,
            D_DDOut=fwd.output_grad("DDOut"),
            D_DDX=fwd.input_grad("DDX") if fwd.has_input("DDX") else None,
            D_DDY=fwd.input_grad("DDY") if fwd.has_input("DDY") else None,
            attrs=fwd.attrs,
        )


class ElementwiseAddTripleGrad(GradOpDef, type="elementwise_add_triple_grad"):
    r"""$$D\_DDX = D\_DDOut,\quad D\_DDY = D\_DDOut$$"""

    DDX = Input("Gradient of X@GRAD; only its shape is read.", dispensable=True)
    DDY = Input("Gradient of Y@GRAD; only its shape is read.", dispensable=True)
    D_DDOut = Input("Gradient of DDOut.")
    D_DDX = Output("Gradient of DDX.")
    D_DDY = Output("Gradient of DDY.")
    axis = _AXIS
    Scale_out = SCALE_OUT
    Scale_x = SCALE_X
    Scale_y = SCALE_Y
    mkldnn_data_type = MKLDNN_DATA_TYPE
    use_mkldnn = USE_MKLDNN
    use_quantizer = USE_QUANTIZER
    inplace = {"D_DDOut": "D_DDX"}
    no_need_buffer_vars = ("DDX", "DDY")
    expected_kernel_type = dtype_of("D_DDOut")

    def infer_shape(ctx):
        like(ctx, [("D_DDX", "DDX"), ("D_DDY", "DDY")])


class ElementwiseSubGradGrad(GradOpDef, type="elementwise_sub_grad_grad"):
    r"""$$DDOut = DDX - DDY$$"""

    Y = Input("Input of the forward op; not read.")
    DOut = Input("Gradient of Out; only its shape is read.")
    DDX = Input("Gradient of X@GRAD.", dispensable=True)
    DDY = Input("Gradient of Y@GRAD.", dispensable=True)
    DDOut = Output("Gradient of Out@GRAD, shape of DOut.")
    axis = _AXIS
    inplace = {"DDX": "DDOut"}
    no_need_buffer_vars = ("Y", "DOut")
    expected_kernel_type = dtype_of("DOut")

    def infer_shape(ctx):
        like(ctx, [("DDOut", "DOut")])


class ElementwiseMulGradGrad(GradOpDef, type="elementwise_mul_grad_grad"):
    r"""$$DDOut = DDX \cdot Y + X \cdot DDY,\quad X@GRAD = DOut \cdot DDY,\quad Y@GRAD = DOut \cdot DDX$$"""

    X = Input("Input of the forward op.")
    Y = Input("Input of the forward op.")
    DOut = Input("Gradient of Out.")
    DDX = Input("Gradient of X@GRAD.", dispensable=True)
    DDY = Input("Gradient of Y@GRAD.", dispensable=True)
    X_grad = Output("Gradient of X.")
    Y_grad = Output("Gradient of Y.")
    DDOut = Output("Gradient of Out@GRAD.")
    axis = _AXIS
    inplace = {"DDX": "DDOut"}

    def infer_shape(ctx):
        like(ctx, [("X@GRAD", "X"), ("Y@GRAD", "Y"), ("DDOut", "DOut")])

    def make_grad(fwd):
        def given(kind, slot):
            return getattr(fwd, kind)(slot) if getattr(fwd, "has_" + kind.partition("_")[0])(slot) else None

        return GradOp(
            "elementwise_mul_triple_grad",
            X=fwd.input("X"),
            Y=fwd.input("Y"),
            DOut=fwd.input("DOut"),
            DDX=given("input", "DDX"),
            DDY=given("input", "DDY"),
            D_DX=given("output_grad", "X@GRAD"),
            D_DY=given("output_grad", "Y@GRAD"),
            D_DDOut=given("output_grad", "DDOut"),
            D_X=fwd.input_grad("X"),
            D_Y=fwd.input_grad("Y"),
            D_DOut=fwd.input_grad("DOut"),
            D_DDX=given("input_grad", "DDX"),
            D_DDY=given("input_grad", "DDY"),
            attrs=fwd.attrs,
        )


class ElementwiseMulTripleGrad(GradOpDef, type="elementwise_mul_triple_grad"):
    r"""Gradient of elementwise_mul_grad_grad.

    $$D\_X = D\_DDOut \cdot DDY,\quad D\_Y = D\_DDOut \cdot DDX,\quad D\_DOut = D\_DX \cdot DDY + D\_DY \cdot DDX$$
    $$D\_DDX = D\_DY \cdot DOut + D\_DDOut \cdot Y,\quad D\_DDY = D\_DX \cdot DOut + D\_DDOut \cdot X$$
    """

    X = Input("Input of the forward op.")
    Y = Input("Input of the forward op.")
    DOut = Input("Gradient of Out.")
    DDX = Input("Gradient of X@GRAD.", dispensable=True)
    DDY = Input("Gradient of Y@GRAD.", dispensable=True)
    D_DX = Input("Gradient of the second gradient's X@GRAD.", dispensable=True)
    D_DY = Input("Gradient of the second gradient's Y@GRAD.", dispensable=True)
    D_DDOut = Input("Gradient of DDOut.", dispensable=True)
    D_X = Output("Gradient of X.")
    D_Y = Output("Gradient of Y.")
    D_DOut = Output("Gradient of DOut.")
    D_DDX = Output("Gradient of DDX.")
    D_DDY = Output("Gradient of DDY.")
    axis = _AXIS

    def infer_shape(ctx):
        like(ctx, [("D_X", "X"), ("D_Y", "Y"), ("D_DOut", "DOut"), ("D_DDX", "X"), ("D_DDY", "Y")])


class ElementwiseDivGradGrad(GradOpDef, type="elementwise_div_grad_grad"):
    r"""Gradient of elementwise_div_grad, whose input Out counts as independent of X and Y.

    $$DDOut = (DDX - Out \cdot DDY) / Y,\quad Y@GRAD = DX (Out \cdot DDY - DDX) / Y,\quad DOut = -DX \cdot DDY$$
    """

    Y = Input("Input of the forward op.")
    Out = Input("Output of the forward op.")
    DX = Input("Gradient of X.", dispensable=True)
    DDX = Input("Gradient of X@GRAD.", dispensable=True)
    DDY = Input("Gradient of Y@GRAD.", dispensable=True)
    Y_grad = Output("Gradient of Y.")
    DOut = Output("Gradient of Out.")
    DDOut = Output("Gradient of Out@GRAD.")
    axis = _AXIS
    inplace = {"DDX": "DDOut"}

    def infer_shape(ctx):
        like(ctx, [("Y@GRAD", "Y"), ("DOut", "Out"), ("DDOut", "Out")])
