"""Ops of every listed element."""

from __future__ import annotations

from oprack.op import (
    REQUIRED,
    Attr,
    ForwardOp,
    GradOp,
    GradOpDef,
    InferShapeContext,
    InferVarTypeContext,
    Input,
    OpDef,
    Output,
    dtype_of,
    empty_grad,
)
from oprack.types import AttrType


# What functions of the listed elements share.
class Unary(OpDef):
    """A function of every listed element; what is not listed stays zero."""

    x = Input("Sparse tensor.")
    out = Output("Sparse tensor of x's layout and pattern.")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("out", ctx.dim("x"))


class GradFromX(GradOpDef, reads="x"):
    """Gradient of a Unary whose derivative is a function of x."""


class GradFromOut(GradOpDef, reads="out", like="out"):
    """Gradient of a Unary whose derivative is a function of out."""


# sparse_abs and its gradient.
class SparseAbs(Unary, type="sparse_abs"):
    r"""$$out = |x|$$ of the listed elements."""


class SparseAbsGrad(GradFromX, of=SparseAbs):
    r"""$$x@GRAD = out@GRAD \cdot \mathrm{sign}(x)$$ of the elements that x lists."""


# sparse_acos and its gradient.
class SparseAcos(Unary, type="sparse_acos"):
    r"""$$out = \arccos x$$ of the listed elements."""


class SparseAcosGrad(GradFromX, of=SparseAcos):
    r"""$$x@GRAD = -out@GRAD / \sqrt{1 - x^2}$$ of the elements that x lists."""


# sparse_acosh and its gradient.
class SparseAcosh(Unary, type="sparse_acosh"):
    r"""$$out = \operatorname{arcosh} x$$ of the listed elements."""


class SparseAcoshGrad(GradFromX, of=SparseAcosh):
    r"""$$x@GRAD = out@GRAD / \sqrt{x^2 - 1}$$ of the elements that x lists."""


# sparse_asin and its gradient.
class SparseAsin(Unary, type="sparse_asin"):
    r"""$$out = \arcsin x$$ of the listed elements."""


class SparseAsinGrad(GradFromX, of=SparseAsin):
    r"""$$x@GRAD = out@GRAD / \sqrt{1 - x^2}$$ of the elements that x lists."""


# sparse_asinh and its gradient.
class SparseAsinh(Unary, type="sparse_asinh"):
    r"""$$out = \operatorname{arsinh} x$$ of the listed elements."""


class SparseAsinhGrad(GradFromX, of=SparseAsinh):
    r"""$$x@GRAD = out@GRAD / \sqrt{x^2 + 1}$$ of the elements that x lists."""


# sparse_atan and its gradient.
class SparseAtan(Unary, type="sparse_atan"):
    r"""$$out = \arctan x$$ of the listed elements."""


class SparseAtanGrad(GradFromX, of=SparseAtan):
    r"""$$x@GRAD = out@GRAD / (1 + x^2)$$ of the elements that x lists."""


# sparse_atanh and its gradient.
class SparseAtanh(Unary, type="sparse_atanh"):
    r"""$$out = \operatorname{artanh} x$$ of the listed elements."""


class SparseAtanhGrad(GradFromX, of=SparseAtanh):
    r"""$$x@GRAD = out@GRAD / (1 - x^2)$$ of the elements that x lists."""


# sparse_cast and its gradient.
class SparseCast(Unary, type="sparse_cast"):
    r"""$$out = x$$ with values, and integers of the pattern, of other dtypes."""

    index_dtype = Attr(-1, "dtype of the pattern as a number of VarType, int32 or int64; -1 keeps it.")
    value_dtype = Attr(-1, "dtype of the values as a number of VarType; -1 keeps it.")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("out", ctx.kind("x"))
        dtype = ctx.attr("value_dtype")
        ctx.set_dtype("out", ctx.dtype("x") if dtype < 0 else dtype)


class SparseCastGrad(GradFromX, of=SparseCast):
    r"""$$x@GRAD = out@GRAD$$ with x's pattern and dtypes."""

    expected_kernel_type = dtype_of("out@GRAD")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("x@GRAD", ctx.kind("x"))
        ctx.set_dtype("x@GRAD", ctx.dtype("x"))


class SparseDivideScalar(Unary, type="sparse_divide_scalar"):
    r"""$$out = x / scalar$$"""

    scalar = Attr(REQUIRED, "The divisor.", type=AttrType.FLOAT)

    def make_grad(fwd: ForwardOp) -> GradOp:
        return GradOp("sparse_divide_scalar", x=fwd.output_grad("out"), out=fwd.input_grad("x"), attrs=fwd.attrs)


# sparse_expm1 and its gradient.
class SparseExpm1(Unary, type="sparse_expm1"):
    r"""$$out = e^x - 1$$ of the listed elements."""


class SparseExpm1Grad(GradFromOut, of=SparseExpm1):
    r"""$$x@GRAD = out@GRAD (out + 1)$$ of the elements that x lists."""


class SparseFullLike(Unary, type="sparse_full_like"):
    r"""$$out = value$$ where x lists an element."""

    x = Input("Sparse tensor.")
    ValueTensor = Input("One-element tensor that overrides `value`.", dispensable=True)
    out = Output("Sparse tensor of x's layout and pattern.")
    value = Attr(REQUIRED, "The number.", type=AttrType.FLOAT)
    dtype = Attr(-1, "dtype of the result as a number of VarType; -1 is that of x.")
    make_grad = empty_grad
    expected_kernel_type = dtype_of("x")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("out", ctx.kind("x"))
        dtype = ctx.attr("dtype")
        ctx.set_dtype("out", ctx.dtype("x") if dtype < 0 else dtype)


class SparseIsnan(Unary, type="sparse_isnan"):
    r"""$$out = [x \ne x]$$: whether each listed element is NaN."""

    make_grad = empty_grad

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("out", ctx.kind("x"))
        ctx.set_dtype("out", "bool")


# sparse_leaky_relu and its gradient.
class SparseLeakyRelu(Unary, type="sparse_leaky_relu"):
    r"""$$out = x$$ where $$x > 0$$, else $$alpha \cdot x$$ of the listed elements."""

    alpha = Attr(REQUIRED, "Slope of the negative side.", type=AttrType.FLOAT)


class SparseLeakyReluGrad(GradFromX, of=SparseLeakyRelu):
    r"""$$x@GRAD = out@GRAD$$ where $$x > 0$$, else $$alpha \cdot out@GRAD$$ of the elements that x lists."""


# sparse_log1p and its gradient.
class SparseLog1P(Unary, type="sparse_log1p"):
    r"""$$out = \ln(1 + x)$$ of the listed elements."""


class SparseLog1PGrad(GradFromX, of=SparseLog1P):
    r"""$$x@GRAD = out@GRAD / (1 + x)$$ of the elements that x lists."""


# sparse_pow and its gradient.
class SparsePow(Unary, type="sparse_pow"):
    r"""$$out = x^{factor}$$ of the listed elements."""

    factor = Attr(REQUIRED, "The exponent.", type=AttrType.FLOAT)


class SparsePowGrad(GradFromX, of=SparsePow):
    r"""$$x@GRAD = out@GRAD \cdot factor \cdot x^{factor-1}$$ of the elements that x lists."""


# sparse_relu and its gradient.
class SparseRelu(Unary, type="sparse_relu"):
    r"""$$out = \max(x, 0)$$ of the listed elements."""


class SparseReluGrad(GradFromOut, of=SparseRelu):
    r"""$$x@GRAD = out@GRAD \cdot [out > 0]$$ of the elements that x lists."""


# sparse_relu6 and its gradient.
class SparseRelu6(Unary, type="sparse_relu6"):
    r"""$$out = \min(\max(x, 0), 6)$$ of the listed elements."""


class SparseRelu6Grad(GradFromOut, of=SparseRelu6):
    r"""$$x@GRAD = out@GRAD \cdot [0 < out < 6]$$ of the elements that x lists."""


class SparseScale(Unary, type="sparse_scale"):
    r"""$$out = scale \cdot x + bias$$ where x lists, or $$scale \cdot (x + bias)$$ without bias_after_scale."""

    scale = Attr(REQUIRED, "Factor.", type=AttrType.FLOAT)
    bias = Attr(REQUIRED, "Shift; what is not listed stays zero.", type=AttrType.FLOAT)
    bias_after_scale = Attr(REQUIRED, "Add the bias after scaling.", type=AttrType.BOOLEAN)

    def make_grad(fwd: ForwardOp) -> GradOp:
        attrs = fwd.attrs | {"bias": 0.0}
        return GradOp("sparse_scale", x=fwd.output_grad("out"), out=fwd.input_grad("x"), attrs=attrs)


# sparse_sin and its gradient.
class SparseSin(Unary, type="sparse_sin"):
    r"""$$out = \sin x$$ of the listed elements."""


class SparseSinGrad(GradFromX, of=SparseSin):
    r"""$$x@GRAD = out@GRAD \cos x$$ of the elements that x lists."""


# sparse_sinh and its gradient.
class SparseSinh(Unary, type="sparse_sinh"):
    r"""$$out = \sinh x$$ of the listed elements."""


class SparseSinhGrad(GradFromX, of=SparseSinh):
    r"""$$x@GRAD = out@GRAD \cosh x$$ of the elements that x lists."""


# sparse_sqrt and its gradient.
class SparseSqrt(Unary, type="sparse_sqrt"):
    r"""$$out = \sqrt{x}$$ of the listed elements."""


class SparseSqrtGrad(GradFromOut, of=SparseSqrt):
    r"""$$x@GRAD = out@GRAD / (2\,out)$$ of the elements that x lists."""


# sparse_square and its gradient.
class SparseSquare(Unary, type="sparse_square"):
    r"""$$out = x^2$$ of the listed elements."""


class SparseSquareGrad(GradFromX, of=SparseSquare):
    r"""$$x@GRAD = 2 x \cdot out@GRAD$$ of the elements that x lists."""


# sparse_tan and its gradient.
class SparseTan(Unary, type="sparse_tan"):
    r"""$$out = \tan x$$ of the listed elements."""


class SparseTanGrad(GradFromX, of=SparseTan):
    r"""$$x@GRAD = out@GRAD (1 + \tan^2 x)$$ of the elements that x lists."""


# sparse_tanh and its gradient.
class SparseTanh(Unary, type="sparse_tanh"):
    r"""$$out = \tanh x$$ of the listed elements."""


class SparseTanhGrad(GradFromOut, of=SparseTanh):
    r"""$$x@GRAD = out@GRAD (1 - out^2)$$ of the elements that x lists."""
