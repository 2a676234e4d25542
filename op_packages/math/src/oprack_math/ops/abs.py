"""abs: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import GradOp, GradOpDef, Input, OpDef, Output
from oprack.op.families import USE_MKLDNN, GradFromX, grad_from_x, like


class Abs(OpDef, type="abs"):
    r"""$$Out = |X|$$ Complex numbers give real ones."""

    X = Input("Tensor of any shape.")
    Out = Output("Shape of X; it has no LoD.")
    use_mkldnn = USE_MKLDNN
    inplace = {"X": "Out"}
    make_grad = grad_from_x

    def infer_shape(ctx):
        ctx.set_dim("Out", ctx.dim("X"))

    def infer_var_type(ctx):
        ctx.set_dtype("Out", {"complex64": "float32", "complex128": "float64"}.get(ctx.dtype("X"), ctx.dtype("X")))


def _dtype_of_x(slot):
    """The gradient of a complex X: Out@GRAD is real, X is not."""

    def expected_kernel_type(ctx):
        return ctx.kernel_type(dtype=ctx.dtype(slot))

    return expected_kernel_type


class AbsGrad(GradFromX, type="abs_grad"):
    r"""$$X@GRAD = Out@GRAD \cdot \operatorname{sign}(X)$$ for complex numbers $X/|X|$."""

    use_mkldnn = USE_MKLDNN
    inplace = {}  # Out@GRAD of a complex X is real
    expected_kernel_type = _dtype_of_x("X")

    def make_grad(fwd):
        return GradOp(
            "abs_double_grad",
            x=fwd.input("X"),
            grad_x_grad=fwd.output_grad("X@GRAD"),
            grad_out_grad=fwd.input_grad("Out@GRAD"),
            attrs=fwd.attrs,
        )


class AbsDoubleGrad(GradOpDef, type="abs_double_grad"):
    r"""$$grad\_out@GRAD = grad\_x@GRAD \cdot \operatorname{sign}(x)$$"""

    x = Input("Input of the forward op.")
    grad_x_grad = Input("Gradient of X@GRAD.")
    grad_out_grad = Output("Gradient of Out@GRAD.")
    use_mkldnn = USE_MKLDNN
    expected_kernel_type = _dtype_of_x("x")

    def infer_shape(ctx):
        like(ctx, [("grad_out@GRAD", "grad_x@GRAD")])
