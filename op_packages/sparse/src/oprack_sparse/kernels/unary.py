"""Kernels of ops of every listed element."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, KernelContext, kernel
from oprack.tensor import SparseTensor, numpy_dtype
from oprack.types import BOOL, FLOATS, HALF_FLOATS, INTEGERS

from oprack_sparse.kernels._patterns import values_at


# assign ---------------------------------------------------------------------------------------------------------------
# Kernel of assign, an op of the pack tensor, over sparse tensors: copies of them.
@kernel("assign", dtypes=FLOATS | INTEGERS | BOOL)
def assign_sparse(X: SparseTensor | None = None) -> SparseTensor | None:
    """The same elements with a copy of the values."""
    return None if X is None else X.with_values(X.values.copy())


# cast -----------------------------------------------------------------------------------------------------------------
# Kernel of cast, an op of the pack tensor, over sparse tensors: `x.astype`.
@kernel("cast", dtypes=FLOATS | HALF_FLOATS | INTEGERS | BOOL)
def cast_sparse(X: SparseTensor, *, out_dtype: int) -> SparseTensor:
    """The values in another dtype."""
    return X.with_values(X.values.astype(numpy_dtype(out_dtype)))


# scale ----------------------------------------------------------------------------------------------------------------
# Kernel of scale, an op of the pack math, over sparse tensors: the operators with numbers, and gradients of sums.
@kernel("scale", dtypes=FLOATS | INTEGERS)
def scale_sparse(
    X: SparseTensor, ScaleTensor: Array | None = None, *, scale: float, bias: float, ctx: KernelContext
) -> SparseTensor:
    """The values times a number; a bias would be added to what is not listed, too."""
    if bias != 0:
        raise InvalidArgumentError(
            f"scale: bias is {bias} for {X!r}; expected 0, since what is not listed would not stay zero; "
            "x.to_dense() has all elements"
        )
    return X.with_values(ctx.run_op("scale", {"X": X.values, "ScaleTensor": ScaleTensor}, {"scale": scale}))


# sparse_abs -----------------------------------------------------------------------------------------------------------
@kernel("sparse_abs", dtypes=FLOATS)
def sparse_abs(x: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """abs of the values."""
    return x.with_values(ctx.run_op("abs", {"X": x.values}))


@kernel("sparse_abs_grad", dtypes=FLOATS)
def sparse_abs_grad(x: SparseTensor, out_grad: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """The gradient of abs at the values."""
    given = {"X": x.values, "Out@GRAD": values_at(out_grad, x)}
    return x.with_values(ctx.run_op("abs_grad", given))


# sparse_acos ----------------------------------------------------------------------------------------------------------
@kernel("sparse_acos", dtypes=FLOATS)
def sparse_acos(x: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """acos of the values."""
    return x.with_values(ctx.run_op("acos", {"X": x.values}))


@kernel("sparse_acos_grad", dtypes=FLOATS)
def sparse_acos_grad(x: SparseTensor, out_grad: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """The gradient of acos at the values."""
    given = {"X": x.values, "Out@GRAD": values_at(out_grad, x)}
    return x.with_values(ctx.run_op("acos_grad", given))


# sparse_acosh ---------------------------------------------------------------------------------------------------------
@kernel("sparse_acosh", dtypes=FLOATS)
def sparse_acosh(x: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """acosh of the values."""
    return x.with_values(ctx.run_op("acosh", {"X": x.values}))


@kernel("sparse_acosh_grad", dtypes=FLOATS)
def sparse_acosh_grad(x: SparseTensor, out_grad: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """The gradient of acosh at the values."""
    given = {"X": x.values, "Out@GRAD": values_at(out_grad, x)}
    return x.with_values(ctx.run_op("acosh_grad", given))


# sparse_asin ----------------------------------------------------------------------------------------------------------
@kernel("sparse_asin", dtypes=FLOATS)
def sparse_asin(x: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """asin of the values."""
    return x.with_values(ctx.run_op("asin", {"X": x.values}))


@kernel("sparse_asin_grad", dtypes=FLOATS)
def sparse_asin_grad(x: SparseTensor, out_grad: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """The gradient of asin at the values."""
    given = {"X": x.values, "Out@GRAD": values_at(out_grad, x)}
    return x.with_values(ctx.run_op("asin_grad", given))


# sparse_asinh ---------------------------------------------------------------------------------------------------------
@kernel("sparse_asinh", dtypes=FLOATS)
def sparse_asinh(x: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """asinh of the values."""
    return x.with_values(ctx.run_op("asinh", {"X": x.values}))


@kernel("sparse_asinh_grad", dtypes=FLOATS)
def sparse_asinh_grad(x: SparseTensor, out_grad: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """The gradient of asinh at the values."""
    given = {"X": x.values, "Out@GRAD": values_at(out_grad, x)}
    return x.with_values(ctx.run_op("asinh_grad", given))


# sparse_atan ----------------------------------------------------------------------------------------------------------
@kernel("sparse_atan", dtypes=FLOATS)
def sparse_atan(x: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """atan of the values."""
    return x.with_values(ctx.run_op("atan", {"X": x.values}))


@kernel("sparse_atan_grad", dtypes=FLOATS)
def sparse_atan_grad(x: SparseTensor, out_grad: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """The gradient of atan at the values."""
    given = {"X": x.values, "Out@GRAD": values_at(out_grad, x)}
    return x.with_values(ctx.run_op("atan_grad", given))


# sparse_atanh ---------------------------------------------------------------------------------------------------------
@kernel("sparse_atanh", dtypes=FLOATS)
def sparse_atanh(x: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """atanh of the values."""
    return x.with_values(ctx.run_op("atanh", {"X": x.values}))


@kernel("sparse_atanh_grad", dtypes=FLOATS)
def sparse_atanh_grad(x: SparseTensor, out_grad: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """The gradient of atanh at the values."""
    given = {"X": x.values, "Out@GRAD": values_at(out_grad, x)}
    return x.with_values(ctx.run_op("atanh_grad", given))


# sparse_cast ----------------------------------------------------------------------------------------------------------
ALL = FLOATS | HALF_FLOATS | INTEGERS | BOOL


@kernel("sparse_cast", dtypes=ALL)
def sparse_cast(x: SparseTensor, *, index_dtype: int, value_dtype: int) -> SparseTensor:
    """The same numbers in other dtypes."""
    values = x.values.copy() if value_dtype < 0 else x.values.astype(numpy_dtype(value_dtype))
    if index_dtype < 0:
        return x.with_values(values)
    return x.rebuilt([a.astype(numpy_dtype(index_dtype)) for a in x.pattern], values)


@kernel("sparse_cast_grad", dtypes=ALL)
def sparse_cast_grad(x: SparseTensor, out_grad: SparseTensor) -> SparseTensor:
    """The gradient in the dtype of x."""
    return x.with_values(values_at(out_grad, x).astype(x.values.dtype))


# sparse_divide_scalar -------------------------------------------------------------------------------------------------
@kernel("sparse_divide_scalar", dtypes=FLOATS | INTEGERS)
def sparse_divide_scalar(x: SparseTensor, *, scalar: float) -> SparseTensor:
    """The values divided by a number; those of integers are cut towards zero."""
    if x.values.dtype.kind == "f":
        return x.with_values(x.values / x.values.dtype.type(scalar))
    return x.with_values(np.trunc(x.values / np.float64(scalar)).astype(x.values.dtype))


# sparse_expm1 ---------------------------------------------------------------------------------------------------------
@kernel("sparse_expm1", dtypes=FLOATS)
def sparse_expm1(x: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """expm1 of the values."""
    return x.with_values(ctx.run_op("expm1", {"X": x.values}))


@kernel("sparse_expm1_grad", dtypes=FLOATS)
def sparse_expm1_grad(out: SparseTensor, out_grad: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """The gradient of expm1 at the values."""
    given = {"Out": out.values, "Out@GRAD": values_at(out_grad, out)}
    return out.with_values(ctx.run_op("expm1_grad", given))


# sparse_full_like -----------------------------------------------------------------------------------------------------
@kernel("sparse_full_like", dtypes=FLOATS | INTEGERS | BOOL)
def sparse_full_like(x: SparseTensor, ValueTensor: Array | None = None, *, value: float, dtype: int) -> SparseTensor:
    """The number for each listed element."""
    number = value if ValueTensor is None else ValueTensor.reshape(-1)[0]
    return x.with_values(np.full(x.values.shape, number, x.values.dtype if dtype < 0 else numpy_dtype(dtype)))


# sparse_isnan ---------------------------------------------------------------------------------------------------------
@kernel("sparse_isnan", dtypes=FLOATS | INTEGERS)
def sparse_isnan(x: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """Whether the values are NaN."""
    return x.with_values(ctx.run_op("isnan_v2", {"X": x.values}))


# sparse_leaky_relu ----------------------------------------------------------------------------------------------------
@kernel("sparse_leaky_relu", dtypes=FLOATS)
def sparse_leaky_relu(x: SparseTensor, *, alpha: float, ctx: KernelContext) -> SparseTensor:
    """leaky_relu of the values."""
    return x.with_values(ctx.run_op("leaky_relu", {"X": x.values}, {"alpha": alpha}))


@kernel("sparse_leaky_relu_grad", dtypes=FLOATS)
def sparse_leaky_relu_grad(
    x: SparseTensor, out_grad: SparseTensor, *, alpha: float, ctx: KernelContext
) -> SparseTensor:
    """The gradient of leaky_relu at the values."""
    given = {"X": x.values, "Out@GRAD": values_at(out_grad, x)}
    return x.with_values(ctx.run_op("leaky_relu_grad", given, {"alpha": alpha}))


# sparse_log1p ---------------------------------------------------------------------------------------------------------
@kernel("sparse_log1p", dtypes=FLOATS)
def sparse_log1p(x: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """log1p of the values."""
    return x.with_values(ctx.run_op("log1p", {"X": x.values}))


@kernel("sparse_log1p_grad", dtypes=FLOATS)
def sparse_log1p_grad(x: SparseTensor, out_grad: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """The gradient of log1p at the values."""
    given = {"X": x.values, "Out@GRAD": values_at(out_grad, x)}
    return x.with_values(ctx.run_op("log1p_grad", given))


# sparse_pow -----------------------------------------------------------------------------------------------------------
@kernel("sparse_pow", dtypes=FLOATS)
def sparse_pow(x: SparseTensor, *, factor: float, ctx: KernelContext) -> SparseTensor:
    """pow of the values."""
    return x.with_values(ctx.run_op("pow", {"X": x.values}, {"factor": factor}))


@kernel("sparse_pow_grad", dtypes=FLOATS)
def sparse_pow_grad(x: SparseTensor, out_grad: SparseTensor, *, factor: float, ctx: KernelContext) -> SparseTensor:
    """The gradient of pow at the values."""
    given = {"X": x.values, "Out@GRAD": values_at(out_grad, x)}
    return x.with_values(ctx.run_op("pow_grad", given, {"factor": factor}))


# sparse_relu ----------------------------------------------------------------------------------------------------------
@kernel("sparse_relu", dtypes=FLOATS)
def sparse_relu(x: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """relu of the values."""
    return x.with_values(ctx.run_op("relu", {"X": x.values}))


@kernel("sparse_relu_grad", dtypes=FLOATS)
def sparse_relu_grad(out: SparseTensor, out_grad: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """The gradient of relu at the values."""
    given = {"Out": out.values, "Out@GRAD": values_at(out_grad, out)}
    return out.with_values(ctx.run_op("relu_grad", given))


# sparse_relu6 ---------------------------------------------------------------------------------------------------------
@kernel("sparse_relu6", dtypes=FLOATS)
def sparse_relu6(x: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """relu6 of the values."""
    return x.with_values(ctx.run_op("relu6", {"X": x.values}))


@kernel("sparse_relu6_grad", dtypes=FLOATS)
def sparse_relu6_grad(out: SparseTensor, out_grad: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """The gradient of relu6 at the values."""
    given = {"Out": out.values, "Out@GRAD": values_at(out_grad, out)}
    return out.with_values(ctx.run_op("relu6_grad", given))


# sparse_scale ---------------------------------------------------------------------------------------------------------
@kernel("sparse_scale", dtypes=FLOATS | INTEGERS)
def sparse_scale(
    x: SparseTensor, *, scale: float, bias: float, bias_after_scale: bool, ctx: KernelContext
) -> SparseTensor:
    """A line of the values."""
    attrs = {"scale": scale, "bias": bias, "bias_after_scale": bias_after_scale}
    return x.with_values(ctx.run_op("scale", {"X": x.values}, attrs))


# sparse_sin -----------------------------------------------------------------------------------------------------------
@kernel("sparse_sin", dtypes=FLOATS)
def sparse_sin(x: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """sin of the values."""
    return x.with_values(ctx.run_op("sin", {"X": x.values}))


@kernel("sparse_sin_grad", dtypes=FLOATS)
def sparse_sin_grad(x: SparseTensor, out_grad: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """The gradient of sin at the values."""
    given = {"X": x.values, "Out@GRAD": values_at(out_grad, x)}
    return x.with_values(ctx.run_op("sin_grad", given))


# sparse_sinh ----------------------------------------------------------------------------------------------------------
@kernel("sparse_sinh", dtypes=FLOATS)
def sparse_sinh(x: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """sinh of the values."""
    return x.with_values(ctx.run_op("sinh", {"X": x.values}))


@kernel("sparse_sinh_grad", dtypes=FLOATS)
def sparse_sinh_grad(x: SparseTensor, out_grad: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """The gradient of sinh at the values."""
    given = {"X": x.values, "Out@GRAD": values_at(out_grad, x)}
    return x.with_values(ctx.run_op("sinh_grad", given))


# sparse_sqrt ----------------------------------------------------------------------------------------------------------
@kernel("sparse_sqrt", dtypes=FLOATS)
def sparse_sqrt(x: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """sqrt of the values."""
    return x.with_values(ctx.run_op("sqrt", {"X": x.values}))


@kernel("sparse_sqrt_grad", dtypes=FLOATS)
def sparse_sqrt_grad(out: SparseTensor, out_grad: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """The gradient of sqrt at the values."""
    given = {"Out": out.values, "Out@GRAD": values_at(out_grad, out)}
    return out.with_values(ctx.run_op("sqrt_grad", given))


# sparse_square --------------------------------------------------------------------------------------------------------
@kernel("sparse_square", dtypes=FLOATS)
def sparse_square(x: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """square of the values."""
    return x.with_values(ctx.run_op("square", {"X": x.values}))


@kernel("sparse_square_grad", dtypes=FLOATS)
def sparse_square_grad(x: SparseTensor, out_grad: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """The gradient of square at the values."""
    given = {"X": x.values, "Out@GRAD": values_at(out_grad, x)}
    return x.with_values(ctx.run_op("square_grad", given))


# sparse_tan -----------------------------------------------------------------------------------------------------------
@kernel("sparse_tan", dtypes=FLOATS)
def sparse_tan(x: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """tan of the values."""
    return x.with_values(ctx.run_op("tan", {"X": x.values}))


@kernel("sparse_tan_grad", dtypes=FLOATS)
def sparse_tan_grad(x: SparseTensor, out_grad: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """The gradient of tan at the values."""
    given = {"X": x.values, "Out@GRAD": values_at(out_grad, x)}
    return x.with_values(ctx.run_op("tan_grad", given))


# sparse_tanh ----------------------------------------------------------------------------------------------------------
@kernel("sparse_tanh", dtypes=FLOATS)
def sparse_tanh(x: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """tanh of the values."""
    return x.with_values(ctx.run_op("tanh", {"X": x.values}))


@kernel("sparse_tanh_grad", dtypes=FLOATS)
def sparse_tanh_grad(out: SparseTensor, out_grad: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """The gradient of tanh at the values."""
    given = {"Out": out.values, "Out@GRAD": values_at(out_grad, out)}
    return out.with_values(ctx.run_op("tanh_grad", given))
