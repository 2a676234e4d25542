"""pow, with gradients to third order."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of
from oprack.op.sbp import unary


class Pow(OpDef, type="pow"):
    r"""$$Out = X^{factor}$$ For integers the exponent is cut towards zero."""

    X = Input("Tensor of any shape.")
    FactorTensor = Input("One-element tensor that overrides `factor`.", dispensable=True)
    Out = Output("Shape and LoD of X.")
    factor = Attr(1.0, "The exponent.")
    inplace = {"X": "Out"}
    expected_kernel_type = dtype_of("X")
    sbp = unary

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")


class PowGrad(GradOpDef, of=Pow, reads="X FactorTensor", grads_of="X"):
    r"""$$X@GRAD = Out@GRAD \cdot factor \cdot X^{factor-1}$$"""

    inplace = {"Out@GRAD": "X@GRAD"}
    expected_kernel_type = dtype_of("X")


class PowDoubleGrad(
    GradOpDef,
    of=PowGrad,
    type="pow_double_grad",
    like={"Out@GRAD": "X"},
    reads="X FactorTensor Out@GRAD",
    grads_of="X Out@GRAD",
    names={"Out@GRAD": "grad_out", "X@GRAD": "grad_x"},
):
    r"""With $f$ = factor and $e$ = grad_x@GRAD:

    $$X@GRAD = e \cdot grad\_out \cdot f (f-1) X^{f-2},\quad grad\_out@GRAD = e f X^{f-1}$$
    """

    inplace = {"grad_x@GRAD": "grad_out@GRAD"}
    expected_kernel_type = dtype_of("X")


class PowTripleGrad(
    GradOpDef,
    of=PowDoubleGrad,
    type="pow_triple_grad",
    like={"grad_out": "X", "grad_x@GRAD": "X"},
    reads="X FactorTensor grad_out grad_x@GRAD X@GRAD@GRAD? grad_out@GRAD@GRAD?",
    grads_of="X grad_out grad_x@GRAD",
    names={"grad_x@GRAD": "grad_grad_x", "grad_out@GRAD": "grad_grad_out", "X@GRAD": "grad_x"},
):
    r"""With $f$ = factor, $d$ = grad_out, $e$ = grad_grad_x, $a$ = grad_x@GRAD, $b$ = grad_grad_out@GRAD:

    $$X@GRAD = a e d f (f-1) (f-2) X^{f-3} + b e f (f-1) X^{f-2}$$
    $$d@GRAD = a e f (f-1) X^{f-2},\quad e@GRAD = a d f (f-1) X^{f-2} + b f X^{f-1}$$
    """

    expected_kernel_type = dtype_of("X")
