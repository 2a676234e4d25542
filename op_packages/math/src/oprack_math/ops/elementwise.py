"""Element-wise arithmetic of two tensors, with gradients to third order. An absent DDX or DDY counts as zero."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, OpVersion, dtype_of, empty_grad

from oprack_math.ops._elementwise import DoubleGrad, Elementwise


def _scale_y(op_type, attr="Scale_y"):
    return OpVersion(op_type).checkpoint("Y of a quantised model has a scale.", ("new_attr", attr, 1.0))


class ElementwiseAdd(Elementwise, type="elementwise_add"):
    r"""$$Out = X + Y$$"""

    inplace = {"X": "Out"}
    versions = _scale_y("elementwise_add")


class ElementwiseAddGrad(GradOpDef, of=ElementwiseAdd, reads="Out@GRAD", shape_of="X Y"):
    r"""$$X@GRAD = Out@GRAD,\quad Y@GRAD = Out@GRAD$$"""

    inplace = {"Out@GRAD": "X@GRAD"}


class ElementwiseAddGradGrad(
    DoubleGrad,
    of=ElementwiseAddGrad,
    reads="Y Out@GRAD X@GRAD@GRAD? Y@GRAD@GRAD?",
    shape_of="Y Out@GRAD",
    grads_of="Out@GRAD",
):
    r"""$$DDOut = DDX + DDY$$"""

    inplace = {"DDX": "DDOut"}
    expected_kernel_type = dtype_of("DOut")


class ElementwiseAddTripleGrad(
    GradOpDef,
    of=ElementwiseAddGradGrad,
    type="elementwise_add_triple_grad",
    shape_of="DDX DDY",
    grads_of="DDX DDY",
    grad_names={"DDOut": "D_DDOut", "DDX": "D_DDX", "DDY": "D_DDY"},
):
    r"""$$D\_DDX = D\_DDOut,\quad D\_DDY = D\_DDOut$$"""

    inplace = {"D_DDOut": "D_DDX"}


class ElementwiseSub(Elementwise, type="elementwise_sub"):
    r"""$$Out = X - Y$$"""

    inplace = {"X": "Out"}
    versions = _scale_y("elementwise_sub", "scale_y")


class ElementwiseSubGrad(GradOpDef, of=ElementwiseSub, reads="Out@GRAD", shape_of="X Y"):
    r"""$$X@GRAD = Out@GRAD,\quad Y@GRAD = -Out@GRAD$$"""

    inplace = {"Out@GRAD": "X@GRAD"}


class ElementwiseSubGradGrad(
    DoubleGrad,
    of=ElementwiseSubGrad,
    reads="Y Out@GRAD X@GRAD@GRAD? Y@GRAD@GRAD?",
    shape_of="Y Out@GRAD",
    grads_of="Out@GRAD",
    attrs="axis",
):
    r"""$$DDOut = DDX - DDY$$"""

    inplace = {"DDX": "DDOut"}
    expected_kernel_type = dtype_of("DOut")


class ElementwiseMul(Elementwise, type="elementwise_mul"):
    r"""$$Out = X \cdot Y$$ X may be SelectedRows; then Y holds one element."""

    versions = _scale_y("elementwise_mul")


class ElementwiseMulGrad(GradOpDef, of=ElementwiseMul, reads="Out@GRAD X Y"):
    r"""$$X@GRAD = Out@GRAD \cdot Y,\quad Y@GRAD = Out@GRAD \cdot X$$"""


class ElementwiseMulGradGrad(
    DoubleGrad,
    of=ElementwiseMulGrad,
    reads="X Y Out@GRAD X@GRAD@GRAD? Y@GRAD@GRAD?",
    grads_of="X Y Out@GRAD",
    attrs="axis",
):
    r"""$$DDOut = DDX \cdot Y + X \cdot DDY,\quad X@GRAD = DOut \cdot DDY,\quad Y@GRAD = DOut \cdot DDX$$"""

    inplace = {"DDX": "DDOut"}


class ElementwiseMulTripleGrad(
    GradOpDef,
    of=ElementwiseMulGradGrad,
    type="elementwise_mul_triple_grad",
    like={"DDX": "X", "DDY": "Y"},
    reads="X Y DOut DDX DDY X@GRAD@GRAD? Y@GRAD@GRAD? DDOut@GRAD?",
    grad_names={
        "DDOut": "D_DDOut",
        "X@GRAD": "D_DX",
        "Y@GRAD": "D_DY",
        "DDX": "D_DDX",
        "DDY": "D_DDY",
        "DOut": "D_DOut",
        "X": "D_X",
        "Y": "D_Y",
    },
):
    r"""Gradient of elementwise_mul_grad_grad.

    $$D\_X = D\_DDOut \cdot DDY,\quad D\_Y = D\_DDOut \cdot DDX,\quad D\_DOut = D\_DX \cdot DDY + D\_DY \cdot DDX$$
    $$D\_DDX = D\_DY \cdot DOut + D\_DDOut \cdot Y,\quad D\_DDY = D\_DX \cdot DOut + D\_DDOut \cdot X$$
    """


class ElementwiseDiv(Elementwise, type="elementwise_div"):
    r"""$$Out = X / Y$$ Integers are divided towards zero; an integer divisor of 0 is an error."""

    versions = _scale_y("elementwise_div")


class ElementwiseDivGrad(GradOpDef, of=ElementwiseDiv, reads="Out@GRAD X Y Out"):
    r"""$$X@GRAD = Out@GRAD / Y,\quad Y@GRAD = -Out@GRAD \cdot Out / Y$$"""


class ElementwiseDivGradGrad(
    DoubleGrad,
    of=ElementwiseDivGrad,
    reads="Y Out X@GRAD? X@GRAD@GRAD? Y@GRAD@GRAD?",
    grads_of="Y Out Out@GRAD",
    like="Out",
    names={"X@GRAD": "DX"},
    grad_names={"Out": "DOut"},
    attrs="axis",
):
    r"""Gradient of elementwise_div_grad, whose input Out counts as independent of X and Y.

    $$DDOut = (DDX - Out \cdot DDY) / Y,\quad Y@GRAD = DX (Out \cdot DDY - DDX) / Y,\quad DOut = -DX \cdot DDY$$
    """

    inplace = {"DDX": "DDOut"}


class ElementwiseMax(Elementwise, type="elementwise_max"):
    r"""$$Out = X \text{ where } X > Y, \text{ else } Y$$ so that a NaN in X loses and one in Y wins."""


class ElementwiseMaxGrad(GradOpDef, of=ElementwiseMax, reads="Out@GRAD X Y"):
    r"""$$X@GRAD = Out@GRAD \cdot [X > Y],\quad Y@GRAD = Out@GRAD \cdot [X \le Y]$$"""


class ElementwiseMin(Elementwise, type="elementwise_min"):
    r"""$$Out = X \text{ where } X < Y, \text{ else } Y$$ so that a NaN in X loses and one in Y wins."""

    x_data_format = Attr("", "Layout of X for oneDNN.", extra=True)
    y_data_format = Attr("", "Layout of Y for oneDNN.", extra=True)


class ElementwiseMinGrad(GradOpDef, of=ElementwiseMin, reads="Out@GRAD X Y"):
    r"""$$X@GRAD = Out@GRAD \cdot [X < Y],\quad Y@GRAD = Out@GRAD \cdot [X \ge Y]$$"""


class ElementwisePow(Elementwise, type="elementwise_pow"):
    r"""$$Out = X^Y$$ Integers go through float64 and are cut towards zero."""

    versions = _scale_y("elementwise_pow")


class ElementwisePowGrad(GradOpDef, of=ElementwisePow, reads="Out@GRAD X Y"):
    r"""$$X@GRAD = Out@GRAD \cdot Y X^{Y-1},\quad Y@GRAD = Out@GRAD \cdot X^Y \ln X$$"""


class ElementwiseFloordiv(Elementwise, type="elementwise_floordiv"):
    r"""$$Out = \lfloor X / Y \rfloor$$ An integer divisor of 0 is an error."""

    make_grad = empty_grad


class ElementwiseMod(Elementwise, type="elementwise_mod"):
    r"""$$Out = X - \lfloor X / Y \rfloor Y$$ with the sign of Y, as in Python. An integer divisor of 0 is an error."""

    inplace = {"X": "Out"}
    make_grad = empty_grad
