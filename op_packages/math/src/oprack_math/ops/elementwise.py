"""Element-wise arithmetic of two tensors, and the first gradients."""

from __future__ import annotations

from oprack.op import Attr, GradOp, Input, OpVersion, dtype_of, empty_grad

from oprack_math.ops._elementwise import BinaryGrad, Elementwise, binary_grad


def _scale_y(op_type, attr="Scale_y"):
    return OpVersion(op_type).checkpoint("Y of a quantised model has a scale.", ("new_attr", attr, 1.0))


def _linear_double_grad(fwd):
    """`<type>_grad` (here elementwise_add_grad, elementwise_sub_grad) depends on X and Y by their shapes only."""
    return GradOp(
        fwd.type + "_grad",
        Y=fwd.input("Y"),
        DOut=fwd.input("Out@GRAD"),
        DDX=fwd.output_grad("X@GRAD") if fwd.has_output("X@GRAD") else None,
        DDY=fwd.output_grad("Y@GRAD") if fwd.has_output("Y@GRAD") else None,
        DDOut=fwd.input_grad("Out@GRAD"),
        attrs=fwd.attrs,
    )


class ElementwiseAdd(Elementwise, type="elementwise_add"):
    r"""$$Out = X + Y$$"""

    inplace = {"X": "Out"}
    make_grad = binary_grad
    versions = _scale_y("elementwise_add")


class ElementwiseAddGrad(BinaryGrad, type="elementwise_add_grad"):
    r"""$$X@GRAD = Out@GRAD,\quad Y@GRAD = Out@GRAD$$"""

    inplace = {"Out@GRAD": "X@GRAD"}
    no_need_buffer_vars = ("X", "Y")
    expected_kernel_type = dtype_of("Out@GRAD")
    make_grad = _linear_double_grad


class ElementwiseSub(Elementwise, type="elementwise_sub"):
    r"""$$Out = X - Y$$"""

    inplace = {"X": "Out"}
    make_grad = binary_grad
    versions = _scale_y("elementwise_sub", "scale_y")


class ElementwiseSubGrad(BinaryGrad, type="elementwise_sub_grad"):
    r"""$$X@GRAD = Out@GRAD,\quad Y@GRAD = -Out@GRAD$$"""

    inplace = {"Out@GRAD": "X@GRAD"}
    no_need_buffer_vars = ("X", "Y")
    expected_kernel_type = dtype_of("Out@GRAD")
    make_grad = _linear_double_grad


class ElementwiseMul(Elementwise, type="elementwise_mul"):
    r"""$$Out = X \cdot Y$$ X may be SelectedRows; then Y holds one element."""

    make_grad = binary_grad
    versions = _scale_y("elementwise_mul")


class ElementwiseMulGrad(BinaryGrad, type="elementwise_mul_grad"):
    r"""$$X@GRAD = Out@GRAD \cdot Y,\quad Y@GRAD = Out@GRAD \cdot X$$"""

    def make_grad(fwd):
        return GradOp(
            "elementwise_mul_grad_grad",
            X=fwd.input("X"),
            Y=fwd.input("Y"),
            DOut=fwd.input("Out@GRAD"),
            DDX=fwd.output_grad("X@GRAD") if fwd.has_output("X@GRAD") else None,
            DDY=fwd.output_grad("Y@GRAD") if fwd.has_output("Y@GRAD") else None,
            X_grad=fwd.input_grad("X"),
            Y_grad=fwd.input_grad("Y"),
            DDOut=fwd.input_grad("Out@GRAD"),
            attrs=fwd.attrs,
        )


class ElementwiseDiv(Elementwise, type="elementwise_div"):
    r"""$$Out = X / Y$$ Integers are divided towards zero; an integer divisor of 0 is an error."""

    versions = _scale_y("elementwise_div")

    def make_grad(fwd):
        return binary_grad(fwd, Out=fwd.output("Out"))


class ElementwiseDivGrad(BinaryGrad, type="elementwise_div_grad"):
    r"""$$X@GRAD = Out@GRAD / Y,\quad Y@GRAD = -Out@GRAD \cdot Out / Y$$"""

    Out = Input("Output of the forward op.")

    def make_grad(fwd):
        return GradOp(
            "elementwise_div_grad_grad",
            Y=fwd.input("Y"),
            Out=fwd.input("Out"),
            DX=fwd.output("X@GRAD") if fwd.has_output("X@GRAD") else None,
            DDX=fwd.output_grad("X@GRAD") if fwd.has_output("X@GRAD") else None,
            DDY=fwd.output_grad("Y@GRAD") if fwd.has_output("Y@GRAD") else None,
            Y_grad=fwd.input_grad("Y"),
            DOut=fwd.input_grad("Out"),
            DDOut=fwd.input_grad("Out@GRAD"),
            attrs=fwd.attrs,
        )


class ElementwiseMax(Elementwise, type="elementwise_max"):
    r"""$$Out = X \text{ where } X > Y, \text{ else } Y$$ so that a NaN in X loses and one in Y wins."""

    make_grad = binary_grad


class ElementwiseMaxGrad(BinaryGrad, type="elementwise_max_grad"):
    r"""$$X@GRAD = Out@GRAD \cdot [X > Y],\quad Y@GRAD = Out@GRAD \cdot [X \le Y]$$"""


class ElementwiseMin(Elementwise, type="elementwise_min"):
    r"""$$Out = X \text{ where } X < Y, \text{ else } Y$$ so that a NaN in X loses and one in Y wins."""

    x_data_format = Attr("", "Layout of X for oneDNN.", extra=True)
    y_data_format = Attr("", "Layout of Y for oneDNN.", extra=True)
    make_grad = binary_grad


class ElementwiseMinGrad(BinaryGrad, type="elementwise_min_grad"):
    r"""$$X@GRAD = Out@GRAD \cdot [X < Y],\quad Y@GRAD = Out@GRAD \cdot [X \ge Y]$$"""

    x_data_format = Attr("", "Layout of X for oneDNN.", extra=True)
    y_data_format = Attr("", "Layout of Y for oneDNN.", extra=True)


class ElementwisePow(Elementwise, type="elementwise_pow"):
    r"""$$Out = X^Y$$ Integers go through float64 and are cut towards zero."""

    make_grad = binary_grad
    versions = _scale_y("elementwise_pow")


class ElementwisePowGrad(BinaryGrad, type="elementwise_pow_grad"):
    r"""$$X@GRAD = Out@GRAD \cdot Y X^{Y-1},\quad Y@GRAD = Out@GRAD \cdot X^Y \ln X$$"""


class ElementwiseFloordiv(Elementwise, type="elementwise_floordiv"):
    r"""$$Out = \lfloor X / Y \rfloor$$ An integer divisor of 0 is an error."""

    make_grad = empty_grad


class ElementwiseMod(Elementwise, type="elementwise_mod"):
    r"""$$Out = X - \lfloor X / Y \rfloor Y$$ with the sign of Y, as in Python. An integer divisor of 0 is an error."""

    inplace = {"X": "Out"}
    make_grad = empty_grad
