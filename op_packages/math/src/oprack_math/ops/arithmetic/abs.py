"""abs: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of
from oprack.op.families import USE_MKLDNN, GradFromX
from oprack.op.sbp import unary
from oprack.types import real_dtype


class Abs(OpDef, type="abs"):
    r"""$$Out = |X|$$ Complex numbers give real ones."""

    X = Input("Tensor of any shape.")
    Out = Output("Shape of X; it has no LoD.")
    use_mkldnn = USE_MKLDNN
    inplace = {"X": "Out"}
    sbp = unary

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", ctx.dim("X"))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", real_dtype(ctx.dtype("X")))


class AbsGrad(GradFromX, of=Abs):
    r"""$$X@GRAD = Out@GRAD \cdot \operatorname{sign}(X)$$ for complex numbers $X/|X|$."""

    inplace = {}  # Out@GRAD of a complex X is real
    expected_kernel_type = dtype_of("X")


class AbsDoubleGrad(
    GradOpDef,
    of=AbsGrad,
    type="abs_double_grad",
    reads="X",
    grads_of="Out@GRAD",
    like="X@GRAD@GRAD",
    names={"X": "x", "X@GRAD": "grad_x", "Out@GRAD": "grad_out"},
):
    r"""$$grad\_out@GRAD = grad\_x@GRAD \cdot \operatorname{sign}(x)$$"""

    expected_kernel_type = dtype_of("x")
