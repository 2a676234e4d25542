"""pow, with gradients to third order."""

from __future__ import annotations

from oprack.op import Attr, GradOp, GradOpDef, Input, OpDef, Output, dtype_of
from oprack.op.families import like

_FACTOR = Attr(1.0, "The exponent.")
_FACTOR_TENSOR = Input("One-element tensor that overrides `factor`.", dispensable=True)


def _exponent(fwd):
    return fwd.input("FactorTensor") if fwd.has_input("FactorTensor") else None


class Pow(OpDef, type="pow"):
    r"""$$Out = X^{factor}$$ For integers the exponent is cut towards zero."""

    X = Input("Tensor of any shape.")
    FactorTensor = _FACTOR_TENSOR
    Out = Output("Shape and LoD of X.")
    factor = _FACTOR
    inplace = {"X": "Out"}
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx):
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")

    def make_grad(fwd):
        return GradOp(
            "pow_grad",
            X=fwd.input("X"),
            FactorTensor=_exponent(fwd),
            Out_grad=fwd.output_grad("Out"),
            X_grad=fwd.input_grad("X"),
            attrs=fwd.attrs,
        )


class PowGrad(GradOpDef, type="pow_grad"):
    r"""$$X@GRAD = Out@GRAD \cdot factor \cdot X^{factor-1}$$"""

    X = Input("Input of the forward op.")
    FactorTensor = _FACTOR_TENSOR
    Out_grad = Input("Gradient of Out.")
    X_grad = Output("Gradient of X.")
    factor = _FACTOR
    inplace = {"Out@GRAD": "X@GRAD"}
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx):
        like(ctx, [("X@GRAD", "X")])

    def make_grad(fwd):
        return GradOp(
            "pow_double_grad",
            X=fwd.input("X"),
            FactorTensor=_exponent(fwd),
            grad_out=fwd.input("Out@GRAD"),
            grad_x_grad=fwd.output_grad("X@GRAD"),
            X_grad=fwd.input_grad("X"),
            grad_out_grad=fwd.input_grad("Out@GRAD"),
            attrs=fwd.attrs,
        )


class PowDoubleGrad(GradOpDef, type="pow_double_grad"):
    r"""With $f$ = factor and $e$ = grad_x@GRAD:

    $$X@GRAD = e \cdot grad\_out \cdot f (f-1) X^{f-2},\quad grad\_out@GRAD = e f X^{f-1}$$
    """

    X = Input("Input of the forward op.")
    FactorTensor = _FACTOR_TENSOR
    grad_out = Input("Gradient of Out.")
    grad_x_grad = Input("Gradient of X@GRAD.")
    X_grad = Output("Gradient of X.")
    grad_out_grad = Output("Gradient of Out@GRAD.")
    factor = _FACTOR
    inplace = {"grad_x@GRAD": "grad_out@GRAD"}
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx):
        like(ctx, [("X@GRAD", "X"), ("grad_out@GRAD", "X")])

    def make_grad(fwd):
        slots = {
            "X": fwd.input("X"),
            "FactorTensor": _exponent(fwd),
            "grad_out": fwd.input("grad_out"),
            "grad_grad_x": fwd.input("grad_x@GRAD"),
            "grad_x@GRAD": fwd.output_grad("X@GRAD") if fwd.has_output("X@GRAD") else None,
            "grad_grad_out@GRAD": fwd.output_grad("grad_out@GRAD") if fwd.has_output("grad_out@GRAD") else None,
            "X@GRAD": fwd.input_grad("X"),
            "grad_out@GRAD": fwd.input_grad("grad_out"),
            "grad_grad_x@GRAD": fwd.input_grad("grad_x@GRAD"),
        }
        return GradOp("pow_triple_grad", attrs=fwd.attrs, slots=slots)


class PowTripleGrad(GradOpDef, type="pow_triple_grad"):
    r"""With $f$ = factor, $d$ = grad_out, $e$ = grad_grad_x, $a$ = grad_x@GRAD, $b$ = grad_grad_out@GRAD:

    $$X@GRAD = a e d f (f-1) (f-2) X^{f-3} + b e f (f-1) X^{f-2}$$
    $$d@GRAD = a e f (f-1) X^{f-2},\quad e@GRAD = a d f (f-1) X^{f-2} + b f X^{f-1}$$
    """

    X = Input("Input of the forward op.")
    FactorTensor = _FACTOR_TENSOR
    grad_out = Input("Gradient of Out.")
    grad_grad_x = Input("Gradient of X@GRAD.")
    grad_x_grad = Input("Gradient of the double gradient's X@GRAD.", dispensable=True)
    grad_grad_out_grad = Input("Gradient of grad_out@GRAD.", dispensable=True, name="grad_grad_out@GRAD")
    X_grad = Output("Gradient of X.")
    grad_out_grad = Output("Gradient of grad_out.")
    grad_grad_x_grad = Output("Gradient of grad_grad_x.")
    factor = _FACTOR
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx):
        like(ctx, [("X@GRAD", "X"), ("grad_out@GRAD", "X"), ("grad_grad_x@GRAD", "X")])
