"""Kernels of activations."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from oprack.kernel import Array, ArrayModule, KernelContext, KernelSpecialization, kernel
from oprack.tensor import ShapeOnly
from oprack.types import COMPLEX, FLOATS, HALF_FLOATS

from oprack_nn.kernels._smooth import blockwise, normal_cdf, normal_pdf
from oprack_nn.kernels._smooth import sigmoid as logistic
from oprack_nn.kernels._smooth import softplus as log1pexp

# shared ---------------------------------------------------------------------------------------------------------------
# What kernels of activations share.
BOTH = ("cpu", "cuda")

REALS = FLOATS | HALF_FLOATS

NUMBERS = REALS | COMPLEX


def clip(x: Array, low: float, high: float, out: Array | None, xp: ArrayModule) -> Array:
    """x with low and high as bounds."""
    kind = x.dtype.type
    y = xp.empty_like(x) if out is None else out
    xp.maximum(x, kind(low), out=y)
    return xp.minimum(y, kind(high), out=y)


def inside(x: Array, grad: Array, low: float, high: float, out: Array | None, xp: ArrayModule) -> Array:
    """grad where low < x < high, else 0."""
    return xp.multiply(grad, (x > low) & (x < high), out=out, dtype=x.dtype)


def negative_part(x: Array, xp: ArrayModule) -> Array:
    """min(x, 0): keeps exp from overflowing where its value is not used."""
    return xp.minimum(x, x.dtype.type(0))


# brelu ----------------------------------------------------------------------------------------------------------------
@kernel("brelu", place=BOTH, dtypes=REALS)
def brelu(X: Array, *, t_min: float, t_max: float, out: Array | None = None, xp: ArrayModule) -> Array:
    return clip(X, t_min, t_max, out, xp)


@kernel("brelu_grad", place=BOTH, dtypes=REALS)
def brelu_grad(
    X: Array, Out_grad: Array, *, t_min: float, t_max: float, out: Array | None = None, xp: ArrayModule
) -> Array:
    return inside(X, Out_grad, t_min, t_max, out, xp)


# celu -----------------------------------------------------------------------------------------------------------------
@kernel("celu", place=BOTH, dtypes=REALS)
def celu(X: Array, *, alpha: float, xp: ArrayModule) -> Array:
    kind = X.dtype.type
    low = kind(alpha) * xp.expm1(_toward(X, alpha, xp))
    return xp.maximum(X, kind(0)) + xp.minimum(low, kind(0))


@kernel("celu_grad", place=BOTH, dtypes=REALS)
def celu_grad(X: Array, Out_grad: Array, *, alpha: float, xp: ArrayModule) -> Array:
    return xp.where(X > 0, Out_grad, Out_grad * xp.exp(_toward(X, alpha, xp)))


@kernel("celu_grad_grad", place=BOTH, dtypes=REALS)
def celu_grad_grad(
    X: Array, grad_out: Array, grad_x_grad: Array, *, alpha: float, xp: ArrayModule
) -> tuple[Array, Array]:
    kind = X.dtype.type
    slope = grad_x_grad * xp.exp(_toward(X, alpha, xp))
    return xp.where(X > 0, kind(0), slope * grad_out / kind(alpha)), xp.where(X > 0, grad_x_grad, slope)


def _toward(x: Array, alpha: float, xp: ArrayModule) -> Array:
    """x / alpha where x <= 0, else 0."""
    return negative_part(x, xp) / x.dtype.type(alpha)


# elu ------------------------------------------------------------------------------------------------------------------
@kernel("elu", place=BOTH, dtypes=REALS)
def elu(X: Array, *, alpha: float, xp: ArrayModule) -> Array:
    return xp.where(X >= 0, X, X.dtype.type(alpha) * xp.expm1(negative_part(X, xp)))


@kernel("elu_grad", place=BOTH, dtypes=REALS)
def elu_grad(X: Array, Out_grad: Array, Out: Array, *, alpha: float, xp: ArrayModule) -> Array:
    return xp.where(X > 0, Out_grad, Out_grad * (Out + X.dtype.type(alpha)))


@kernel("elu_grad_grad", place=BOTH, dtypes=REALS)
def elu_grad_grad(
    X: Array, grad_out: Array, grad_x_grad: Array, *, alpha: float, xp: ArrayModule
) -> tuple[Array, Array]:
    slope = X.dtype.type(alpha) * xp.exp(negative_part(X, xp)) * grad_x_grad
    return xp.where(X > 0, X.dtype.type(0), slope * grad_out), xp.where(X > 0, grad_x_grad, slope)


# gelu -----------------------------------------------------------------------------------------------------------------
@kernel("gelu", place=BOTH, dtypes=REALS)
def gelu(X: Array, *, approximate: bool, xp: ArrayModule) -> Array:
    cdf = _tanh_cdf if approximate else normal_cdf
    return blockwise(lambda x: x * cdf(x, xp), xp, X)


@kernel("gelu_grad", place=BOTH, dtypes=REALS)
def gelu_grad(X: Array, Out_grad: Array, *, approximate: bool, xp: ArrayModule) -> Array:
    return blockwise(lambda x, g: g * _gelu_slope(x, approximate, xp), xp, X, Out_grad)


def _tanh_cdf(x: Array, xp: ArrayModule) -> Array:
    """The approximation of the normal distribution that gelu's formula with tanh contains."""
    kind = x.dtype.type
    inner = x * (kind(1) + kind(0.044715) * x * x) * kind(math.sqrt(2 / math.pi))
    return kind(0.5) * (kind(1) + xp.tanh(inner))


def _gelu_slope(x: Array, approximate: bool, xp: ArrayModule) -> Array:
    if not approximate:
        return normal_cdf(x, xp) + x * normal_pdf(x, xp)
    kind = x.dtype.type
    cdf = _tanh_cdf(x, xp)
    inner = kind(math.sqrt(2 / math.pi)) * (kind(1) + kind(3 * 0.044715) * x * x)
    return cdf + kind(2) * x * (cdf - cdf * cdf) * inner


# hard_shrink ----------------------------------------------------------------------------------------------------------
@kernel("hard_shrink", place=BOTH, dtypes=REALS)
def hard_shrink(X: Array, *, threshold: float, out: Array | None = None, xp: ArrayModule) -> Array:
    return xp.multiply(X, (X > threshold) | (X < -threshold), out=out, dtype=X.dtype)


@kernel("hard_shrink_grad", place=BOTH, dtypes=REALS)
def hard_shrink_grad(
    X: Array, Out_grad: Array, *, threshold: float, out: Array | None = None, xp: ArrayModule
) -> Array:
    return xp.multiply(Out_grad, (X > threshold) | (X < -threshold), out=out, dtype=X.dtype)


# hard_sigmoid ---------------------------------------------------------------------------------------------------------
@kernel("hard_sigmoid", place=BOTH, dtypes=REALS)
def hard_sigmoid(X: Array, *, slope: float, offset: float, out: Array | None = None, xp: ArrayModule) -> Array:
    kind = X.dtype.type
    y = xp.empty_like(X) if out is None else out
    xp.multiply(X, kind(slope), out=y)
    y += kind(offset)
    return clip(y, 0.0, 1.0, y, xp)


@kernel("hard_sigmoid_grad", place=BOTH, dtypes=REALS)
def hard_sigmoid_grad(Out: Array, Out_grad: Array, *, slope: float, xp: ArrayModule) -> Array:
    return inside(Out, Out_grad, 0.0, 1.0, None, xp) * Out.dtype.type(slope)


# hard_swish -----------------------------------------------------------------------------------------------------------
@kernel("hard_swish", place=BOTH, dtypes=REALS)
def hard_swish(X: Array, *, threshold: float, scale: float, offset: float, xp: ArrayModule) -> Array:
    kind = X.dtype.type
    y = xp.empty_like(X)
    xp.add(X, kind(offset), out=y)
    clip(y, 0.0, threshold, y, xp)
    y /= kind(scale)
    y *= X  # last, so that it overflows no sooner than the result
    return y


@kernel("hard_swish_grad", place=BOTH, dtypes=REALS)
def hard_swish_grad(
    X: Array, Out_grad: Array, *, threshold: float, scale: float, offset: float, xp: ArrayModule
) -> Array:
    kind = X.dtype.type
    shifted = X + kind(offset)
    slope = xp.where(shifted < threshold, (shifted > 0) * (X + shifted), kind(threshold))
    return Out_grad * slope / kind(scale)


# leaky_relu -----------------------------------------------------------------------------------------------------------
@kernel("leaky_relu", place=BOTH, dtypes=REALS)
def leaky_relu(X: Array, *, alpha: float, xp: ArrayModule) -> Array:
    low = xp.empty_like(X)
    xp.multiply(X, X.dtype.type(alpha), out=low)
    # the maximum is the same for these slopes, and faster; infinity times 0 is no number
    return xp.maximum(X, low, out=low) if 0 < alpha <= 1 else xp.where(X > 0, X, low)


@kernel("leaky_relu_grad", place=BOTH, dtypes=REALS)
def leaky_relu_grad(X: Array, Out_grad: Array, *, alpha: float, xp: ArrayModule) -> Array:
    return xp.where(X > 0, Out_grad, Out_grad * X.dtype.type(alpha))


@kernel("leaky_relu_grad_grad", place=BOTH, dtypes=REALS)
def leaky_relu_grad_grad(grad_x_grad: Array, X: Array, *, alpha: float, xp: ArrayModule) -> Array:
    return xp.where(X > 0, grad_x_grad, grad_x_grad * X.dtype.type(alpha))


# log_softmax ----------------------------------------------------------------------------------------------------------
@kernel("log_softmax", place=BOTH, dtypes=FLOATS | HALF_FLOATS)
def log_softmax(X: Array, *, axis: int, out: Array | None = None, xp: ArrayModule) -> Array:
    y = xp.empty_like(X) if out is None else out
    if X.size == 0:
        return y
    over = axis if X.ndim else None
    xp.subtract(X, X.max(axis=over, keepdims=True), out=y)
    y -= xp.log(xp.exp(y).sum(axis=over, keepdims=True))
    return y


@kernel("log_softmax_grad", place=BOTH, dtypes=FLOATS | HALF_FLOATS)
def log_softmax_grad(Out: Array, Out_grad: Array, *, axis: int, xp: ArrayModule) -> Array:
    total = Out_grad.sum(axis=axis if Out.ndim else None, keepdims=True)
    return Out_grad - xp.exp(Out) * total


# logsigmoid -----------------------------------------------------------------------------------------------------------
@kernel("logsigmoid", place=BOTH, dtypes=NUMBERS)
def logsigmoid(X: Array, *, xp: ArrayModule) -> Array:
    return -log1pexp(-X, xp)


@kernel("logsigmoid_grad", place=BOTH, dtypes=NUMBERS)
def logsigmoid_grad(X: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    return Out_grad * xp.conj(logistic(-X, xp))


# maxout ---------------------------------------------------------------------------------------------------------------
def _grouped(x: Array, axis: int, groups: int) -> tuple[Array, int]:
    """x with its channels split into (channels / groups, groups), and the dim of the groups."""
    axis %= x.ndim
    return x.reshape(*x.shape[:axis], x.shape[axis] // groups, groups, *x.shape[axis + 1 :]), axis + 1


@kernel("maxout", place=("cpu", "cuda"), dtypes=FLOATS)
def maxout(X: Array, *, groups: int, axis: int) -> Array:
    x, dim = _grouped(X, axis, groups)
    return x.max(axis=dim)


@kernel("maxout_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def maxout_grad(X: Array, Out: Array, Out_grad: Array, *, groups: int, axis: int, xp: ArrayModule) -> Array:
    x, dim = _grouped(X, axis, groups)
    first = xp.expand_dims(x.argmax(axis=dim), dim)
    shape = [1] * x.ndim
    shape[dim] = groups
    hit = first == xp.arange(groups).reshape(shape)
    return xp.where(hit, xp.expand_dims(Out_grad, dim), X.dtype.type(0)).reshape(X.shape)


# mish -----------------------------------------------------------------------------------------------------------------
@kernel("mish", place=BOTH, dtypes=REALS)
def mish(X: Array, *, threshold: float, xp: ArrayModule) -> Array:
    return X * xp.tanh(_linear_above(X, threshold, log1pexp(X, xp), xp))


@kernel("mish_grad", place=BOTH, dtypes=REALS)
def mish_grad(X: Array, Out_grad: Array, *, threshold: float, xp: ArrayModule) -> Array:
    kind = X.dtype.type
    t = xp.tanh(_linear_above(X, threshold, log1pexp(X, xp), xp))
    slope = xp.where(X > threshold, kind(1), logistic(X, xp))
    return Out_grad * (t + X * (kind(1) - t * t) * slope)


def _linear_above(x: Array, threshold: float, y: Array, xp: ArrayModule) -> Array:
    return xp.where(x > threshold, x, y)


# relu -----------------------------------------------------------------------------------------------------------------
def _fmax(call: KernelSpecialization) -> Callable[..., Any]:
    return partial(call.xp.fmax, call.xp.zeros((), call.dtypes["X"][0]))


@kernel("relu", place=BOTH, dtypes=REALS, specialize=_fmax)
def relu(X: Array, *, out: Array | None = None, xp: ArrayModule) -> Array:
    return xp.fmax(X, X.dtype.type(0), out=out)  # NaN becomes 0, as in Paddle


@kernel("relu_grad", place=BOTH, dtypes=REALS)
def relu_grad(Out: Array, Out_grad: Array, *, out: Array | None = None, xp: ArrayModule) -> Array:
    return xp.multiply(Out_grad, Out > 0, out=out, dtype=Out.dtype)


@kernel("relu_grad_grad", place=BOTH, dtypes=REALS)
def relu_grad_grad(grad_x_grad: Array, Out: Array, *, out: Array | None = None, xp: ArrayModule) -> Array:
    return xp.multiply(grad_x_grad, Out > 0, out=out, dtype=Out.dtype)


# relu6 ----------------------------------------------------------------------------------------------------------------
@kernel("relu6", place=BOTH, dtypes=REALS)
def relu6(X: Array, *, threshold: float, out: Array | None = None, xp: ArrayModule) -> Array:
    return clip(X, 0.0, threshold, out, xp)


@kernel("relu6_grad", place=BOTH, dtypes=REALS)
def relu6_grad(Out: Array, Out_grad: Array, *, threshold: float, out: Array | None = None, xp: ArrayModule) -> Array:
    return inside(Out, Out_grad, 0.0, threshold, out, xp)


# rrelu ----------------------------------------------------------------------------------------------------------------
@kernel("rrelu", place=("cpu", "cuda"), dtypes=FLOATS | HALF_FLOATS)
def rrelu(
    X: Array, *, is_test: bool, lower: float, upper: float, ctx: KernelContext, xp: ArrayModule
) -> tuple[Array, Array]:
    kind = X.dtype.type
    if is_test:
        slope = kind((lower + upper) / 2)
    else:
        slope = xp.asarray(ctx.generator(0).uniform(lower, upper, X.shape)).astype(X.dtype)
    noise = xp.where(X >= 0, kind(1), slope)
    return X * noise, noise


@kernel("rrelu_grad", place=("cpu", "cuda"), dtypes=FLOATS | HALF_FLOATS)
def rrelu_grad(X: ShapeOnly, Noise: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    return xp.multiply(Out_grad, Noise)


# selu -----------------------------------------------------------------------------------------------------------------
@kernel("selu", place=BOTH, dtypes=REALS)
def selu(X: Array, *, scale: float, alpha: float, xp: ArrayModule) -> Array:
    kind = X.dtype.type
    return xp.where(X > 0, kind(scale) * X, kind(scale * alpha) * xp.expm1(negative_part(X, xp)))


@kernel("selu_grad", place=BOTH, dtypes=REALS)
def selu_grad(Out: Array, Out_grad: Array, *, scale: float, alpha: float, xp: ArrayModule) -> Array:
    kind = Out.dtype.type
    return Out_grad * xp.where(Out > 0, kind(scale), Out + kind(scale * alpha))


# silu -----------------------------------------------------------------------------------------------------------------
@kernel("silu", place=BOTH, dtypes=NUMBERS)
def silu(X: Array, *, xp: ArrayModule) -> Array:
    return X * logistic(X, xp)


@kernel("silu_grad", place=BOTH, dtypes=NUMBERS)
def silu_grad(X: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """By X alone, as kernel libraries have it; Out says no more."""
    s, one = logistic(X, xp), X.dtype.type(1)
    return Out_grad * xp.conj(s * (one + X * (one - s)))


# soft_relu ------------------------------------------------------------------------------------------------------------
@kernel("soft_relu", place=BOTH, dtypes=REALS)
def soft_relu(X: Array, *, threshold: float, xp: ArrayModule) -> Array:
    kind = X.dtype.type
    return log1pexp(xp.minimum(xp.maximum(X, kind(-threshold)), kind(threshold)), xp)


@kernel("soft_relu_grad", place=BOTH, dtypes=REALS)
def soft_relu_grad(Out: Array, Out_grad: Array, *, threshold: float, xp: ArrayModule) -> Array:
    inside = (Out > -threshold) & (Out < threshold)
    return Out_grad * -xp.expm1(-Out) * inside


# softmax --------------------------------------------------------------------------------------------------------------
@kernel("softmax", place=BOTH, dtypes=FLOATS | HALF_FLOATS)
def softmax(X: Array, *, axis: int, out: Array | None = None, xp: ArrayModule) -> Array | None:
    y = xp.empty_like(X) if out is None else out
    if X.size == 0:
        return y
    over = axis if X.ndim else None
    xp.subtract(X, X.max(axis=over, keepdims=True), out=y)
    xp.exp(y, out=y)
    y /= y.sum(axis=over, keepdims=True)
    return y


@kernel("softmax_grad", place=BOTH, dtypes=FLOATS | HALF_FLOATS)
def softmax_grad(Out: Array, Out_grad: Array, *, axis: int, xp: ArrayModule) -> Array:
    dx = xp.empty_like(Out)
    xp.multiply(Out_grad, Out, out=dx)
    total = dx.sum(axis=axis if Out.ndim else None, keepdims=True)
    xp.subtract(Out_grad, total, out=dx)
    dx *= Out
    return dx


# softplus -------------------------------------------------------------------------------------------------------------
@kernel("softplus", place=BOTH, dtypes=NUMBERS)
def softplus(X: Array, *, beta: float, threshold: float, xp: ArrayModule) -> Array:
    kind = X.dtype.type
    scaled = X * kind(beta)
    return xp.where(scaled > threshold, X, log1pexp(scaled, xp) / kind(beta))


@kernel("softplus_grad", place=BOTH, dtypes=NUMBERS)
def softplus_grad(X: Array, Out_grad: Array, *, beta: float, threshold: float, xp: ArrayModule) -> Array:
    scaled = X * X.dtype.type(beta)
    return xp.where(scaled > threshold, Out_grad, Out_grad * xp.conj(logistic(scaled, xp)))


@kernel("softplus_double_grad", place=BOTH, dtypes=NUMBERS)
def softplus_double_grad(
    X: Array, grad_out: Array, grad_x_grad: Array, *, beta: float, threshold: float, xp: ArrayModule
) -> tuple[Array, Array]:
    kind = X.dtype.type
    scaled = X * kind(beta)
    s = xp.where(scaled > threshold, kind(1), logistic(scaled, xp))
    return grad_x_grad * grad_out * kind(beta) * (s - s * s), grad_x_grad * s


# softshrink -----------------------------------------------------------------------------------------------------------
@kernel("softshrink", place=BOTH, dtypes=REALS)
def softshrink(X: Array, *, lambda_: float, xp: ArrayModule) -> Array:
    kind = X.dtype.type
    return xp.where(X > lambda_, X - kind(lambda_), xp.where(X < -lambda_, X + kind(lambda_), X * kind(0)))


@kernel("softshrink_grad", place=BOTH, dtypes=REALS)
def softshrink_grad(X: Array, Out_grad: Array, *, lambda_: float, out: Array | None = None, xp: ArrayModule) -> Array:
    return xp.multiply(Out_grad, (X > lambda_) | (X < -lambda_), out=out, dtype=X.dtype)


# softsign -------------------------------------------------------------------------------------------------------------
@kernel("softsign", place=BOTH, dtypes=NUMBERS)
def softsign(X: Array, *, xp: ArrayModule) -> Array:
    return X / (X.dtype.type(1) + abs(X))


@kernel("softsign_grad", place=BOTH, dtypes=NUMBERS)
def softsign_grad(X: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    scale = X.dtype.type(1) + abs(X)
    return Out_grad / (scale * scale)


# stanh ----------------------------------------------------------------------------------------------------------------
@kernel("stanh", place=BOTH, dtypes=NUMBERS)
def stanh(X: Array, *, scale_a: float, scale_b: float, xp: ArrayModule) -> Array:
    kind = X.dtype.type
    return kind(scale_b) * xp.tanh(X * kind(scale_a))


@kernel("stanh_grad", place=BOTH, dtypes=NUMBERS)
def stanh_grad(X: Array, Out_grad: Array, *, scale_a: float, scale_b: float, xp: ArrayModule) -> Array:
    kind = X.dtype.type
    t = xp.tanh(X * kind(scale_a))
    return Out_grad * xp.conj(kind(scale_a * scale_b) * (kind(1) - t * t))


# swish ----------------------------------------------------------------------------------------------------------------
@kernel("swish", place=BOTH, dtypes=REALS)
def swish(X: Array, *, beta: float, xp: ArrayModule) -> Array:
    return X * logistic(X * X.dtype.type(beta), xp)


@kernel("swish_grad", place=BOTH, dtypes=REALS)
def swish_grad(X: Array, Out_grad: Array, *, beta: float, xp: ArrayModule) -> Array:
    kind = X.dtype.type
    scaled = X * kind(beta)
    s = logistic(scaled, xp)
    return Out_grad * s * (kind(1) + scaled * (kind(1) - s))


# tanh_shrink ----------------------------------------------------------------------------------------------------------
@kernel("tanh_shrink", place=BOTH, dtypes=REALS)
def tanh_shrink(X: Array, *, xp: ArrayModule) -> Array:
    return X - xp.tanh(X)


@kernel("tanh_shrink_grad", place=BOTH, dtypes=REALS)
def tanh_shrink_grad(X: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    t = xp.tanh(X)
    return Out_grad * t * t


# thresholded_relu -----------------------------------------------------------------------------------------------------
@kernel("thresholded_relu", place=BOTH, dtypes=REALS)
def thresholded_relu(X: Array, *, threshold: float, out: Array | None = None, xp: ArrayModule) -> Array:
    return xp.multiply(X, X > threshold, out=out, dtype=X.dtype)


@kernel("thresholded_relu_grad", place=BOTH, dtypes=REALS)
def thresholded_relu_grad(
    X: Array, Out_grad: Array, *, threshold: float, out: Array | None = None, xp: ArrayModule
) -> Array:
    return xp.multiply(Out_grad, X > threshold, out=out, dtype=X.dtype)
