"""Kernels of the smooth activations."""

from __future__ import annotations

import math

from oprack.kernel import kernel
from oprack.types import COMPLEX, FLOATS, HALF_FLOATS

from oprack_nn.kernels._smooth import blockwise, normal_cdf, normal_pdf
from oprack_nn.kernels._smooth import sigmoid as logistic
from oprack_nn.kernels._smooth import softplus as log1pexp

BOTH = ("cpu", "cuda")
REALS = FLOATS | HALF_FLOATS
NUMBERS = REALS | COMPLEX


@kernel("sigmoid", place=BOTH, dtypes=NUMBERS)
def sigmoid(X, *, out=None, xp):
    return logistic(X, xp, out)


@kernel("sigmoid_grad", place=BOTH, dtypes=NUMBERS)
def sigmoid_grad(Out, Out_grad, *, xp):
    return Out_grad * xp.conj(Out - Out * Out)


@kernel("sigmoid_grad_grad", place=BOTH, dtypes=NUMBERS)
def sigmoid_grad_grad(Out, fwd_grad_out, grad_x_grad, *, xp):
    kind = Out.dtype.type
    return (kind(1) - kind(2) * Out) * fwd_grad_out * grad_x_grad, (Out - Out * Out) * grad_x_grad


@kernel("sigmoid_triple_grad", place=BOTH, dtypes=NUMBERS)
def sigmoid_triple_grad(Out, fwd_grad_out, grad_grad_x, grad_out_grad, grad_grad_out_grad=None, *, xp):
    kind = Out.dtype.type
    bend = kind(1) - kind(2) * Out
    by_out = kind(-2) * grad_out_grad * fwd_grad_out
    by_x = grad_out_grad * bend * fwd_grad_out
    if grad_grad_out_grad is not None:
        by_out = by_out + grad_grad_out_grad * bend
        by_x = by_x + grad_grad_out_grad * (Out - Out * Out)
    return by_out * grad_grad_x, grad_out_grad * bend * grad_grad_x, by_x


@kernel("logsigmoid", place=BOTH, dtypes=NUMBERS)
def logsigmoid(X, *, xp):
    return -log1pexp(-X, xp)


@kernel("logsigmoid_grad", place=BOTH, dtypes=NUMBERS)
def logsigmoid_grad(X, Out_grad, *, xp):
    return Out_grad * xp.conj(logistic(-X, xp))


@kernel("silu", place=BOTH, dtypes=NUMBERS)
def silu(X, *, xp):
    return X * logistic(X, xp)


@kernel("silu_grad", place=BOTH, dtypes=NUMBERS)
def silu_grad(X, Out_grad, Out, *, xp):
    s = logistic(X, xp)
    return Out_grad * xp.conj(s + Out * (X.dtype.type(1) - s))


@kernel("swish", place=BOTH, dtypes=REALS)
def swish(X, *, beta, xp):
    return X * logistic(X * X.dtype.type(beta), xp)


@kernel("swish_grad", place=BOTH, dtypes=REALS)
def swish_grad(X, Out_grad, *, beta, xp):
    kind = X.dtype.type
    scaled = X * kind(beta)
    s = logistic(scaled, xp)
    return Out_grad * s * (kind(1) + scaled * (kind(1) - s))


@kernel("gelu", place=BOTH, dtypes=REALS)
def gelu(X, *, approximate, xp):
    cdf = _tanh_cdf if approximate else normal_cdf
    return blockwise(lambda x: x * cdf(x, xp), xp, X)


@kernel("gelu_grad", place=BOTH, dtypes=REALS)
def gelu_grad(X, Out_grad, *, approximate, xp):
    return blockwise(lambda x, g: g * _gelu_slope(x, approximate, xp), xp, X, Out_grad)


@kernel("mish", place=BOTH, dtypes=REALS)
def mish(X, *, threshold, xp):
    return X * xp.tanh(_linear_above(X, threshold, log1pexp(X, xp), xp))


@kernel("mish_grad", place=BOTH, dtypes=REALS)
def mish_grad(X, Out_grad, *, threshold, xp):
    kind = X.dtype.type
    t = xp.tanh(_linear_above(X, threshold, log1pexp(X, xp), xp))
    slope = xp.where(X > threshold, kind(1), logistic(X, xp))
    return Out_grad * (t + X * (kind(1) - t * t) * slope)


@kernel("softplus", place=BOTH, dtypes=NUMBERS)
def softplus(X, *, beta, threshold, xp):
    kind = X.dtype.type
    scaled = X * kind(beta)
    return xp.where(scaled > threshold, X, log1pexp(scaled, xp) / kind(beta))


@kernel("softplus_grad", place=BOTH, dtypes=NUMBERS)
def softplus_grad(X, Out_grad, *, beta, threshold, xp):
    scaled = X * X.dtype.type(beta)
    return xp.where(scaled > threshold, Out_grad, Out_grad * xp.conj(logistic(scaled, xp)))


@kernel("softplus_double_grad", place=BOTH, dtypes=NUMBERS)
def softplus_double_grad(X, grad_out, grad_x_grad, *, beta, threshold, xp):
    kind = X.dtype.type
    scaled = X * kind(beta)
    s = xp.where(scaled > threshold, kind(1), logistic(scaled, xp))
    return grad_x_grad * grad_out * kind(beta) * (s - s * s), grad_x_grad * s


@kernel("soft_relu", place=BOTH, dtypes=REALS)
def soft_relu(X, *, threshold, xp):
    kind = X.dtype.type
    return log1pexp(xp.minimum(xp.maximum(X, kind(-threshold)), kind(threshold)), xp)


@kernel("soft_relu_grad", place=BOTH, dtypes=REALS)
def soft_relu_grad(Out, Out_grad, *, threshold, xp):
    inside = (Out > -threshold) & (Out < threshold)
    return Out_grad * -xp.expm1(-Out) * inside


@kernel("softsign", place=BOTH, dtypes=NUMBERS)
def softsign(X, *, xp):
    return X / (X.dtype.type(1) + abs(X))


@kernel("softsign_grad", place=BOTH, dtypes=NUMBERS)
def softsign_grad(X, Out_grad, *, xp):
    scale = X.dtype.type(1) + abs(X)
    return Out_grad / (scale * scale)


@kernel("tanh_shrink", place=BOTH, dtypes=REALS)
def tanh_shrink(X, *, xp):
    return X - xp.tanh(X)


@kernel("tanh_shrink_grad", place=BOTH, dtypes=REALS)
def tanh_shrink_grad(X, Out_grad, *, xp):
    t = xp.tanh(X)
    return Out_grad * t * t


@kernel("stanh", place=BOTH, dtypes=NUMBERS)
def stanh(X, *, scale_a, scale_b, xp):
    kind = X.dtype.type
    return kind(scale_b) * xp.tanh(X * kind(scale_a))


@kernel("stanh_grad", place=BOTH, dtypes=NUMBERS)
def stanh_grad(X, Out_grad, *, scale_a, scale_b, xp):
    kind = X.dtype.type
    t = xp.tanh(X * kind(scale_a))
    return Out_grad * xp.conj(kind(scale_a * scale_b) * (kind(1) - t * t))


def _linear_above(x, threshold, y, xp):
    return xp.where(x > threshold, x, y)


def _tanh_cdf(x, xp):
    """The approximation of the normal distribution that gelu's formula with tanh contains."""
    kind = x.dtype.type
    inner = x * (kind(1) + kind(0.044715) * x * x) * kind(math.sqrt(2 / math.pi))
    return kind(0.5) * (kind(1) + xp.tanh(inner))


def _gelu_slope(x, approximate, xp):
    if not approximate:
        return normal_cdf(x, xp) + x * normal_pdf(x, xp)
    kind = x.dtype.type
    cdf = _tanh_cdf(x, xp)
    inner = kind(math.sqrt(2 / math.pi)) * (kind(1) + kind(3 * 0.044715) * x * x)
    return cdf + kind(2) * x * (cdf - cdf * cdf) * inner
