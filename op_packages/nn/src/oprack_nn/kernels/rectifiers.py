"""Kernels of the piecewise activations."""

from __future__ import annotations

from functools import partial

from oprack.kernel import kernel
from oprack.types import FLOATS, HALF_FLOATS

BOTH = ("cpu", "cuda")
REALS = FLOATS | HALF_FLOATS


def _fmax(call):
    return partial(call.xp.fmax, call.xp.zeros((), call.dtypes["X"][0]))


@kernel("relu", place=BOTH, dtypes=REALS, specialize=_fmax)
def relu(X, *, out=None, xp):
    return xp.fmax(X, X.dtype.type(0), out=out)  # NaN becomes 0, as in Paddle


@kernel("relu_grad", place=BOTH, dtypes=REALS)
def relu_grad(Out, Out_grad, *, out=None, xp):
    return xp.multiply(Out_grad, Out > 0, out=out, dtype=Out.dtype)


@kernel("relu_grad_grad", place=BOTH, dtypes=REALS)
def relu_grad_grad(grad_x_grad, Out, *, out=None, xp):
    return xp.multiply(grad_x_grad, Out > 0, out=out, dtype=Out.dtype)


@kernel("relu6", place=BOTH, dtypes=REALS)
def relu6(X, *, threshold, out=None, xp):
    return _clip(X, 0.0, threshold, out, xp)


@kernel("relu6_grad", place=BOTH, dtypes=REALS)
def relu6_grad(Out, Out_grad, *, threshold, out=None, xp):
    return _inside(Out, Out_grad, 0.0, threshold, out, xp)


@kernel("leaky_relu", place=BOTH, dtypes=REALS)
def leaky_relu(X, *, alpha, xp):
    low = xp.empty_like(X)
    xp.multiply(X, X.dtype.type(alpha), out=low)
    # the maximum is the same for these slopes, and faster; infinity times 0 is no number
    return xp.maximum(X, low, out=low) if 0 < alpha <= 1 else xp.where(X > 0, X, low)


@kernel("leaky_relu_grad", place=BOTH, dtypes=REALS)
def leaky_relu_grad(X, Out_grad, *, alpha, xp):
    return xp.where(X > 0, Out_grad, Out_grad * X.dtype.type(alpha))


@kernel("leaky_relu_grad_grad", place=BOTH, dtypes=REALS)
def leaky_relu_grad_grad(grad_x_grad, X, *, alpha, xp):
    return xp.where(X > 0, grad_x_grad, grad_x_grad * X.dtype.type(alpha))


@kernel("elu", place=BOTH, dtypes=REALS)
def elu(X, *, alpha, xp):
    return xp.where(X >= 0, X, X.dtype.type(alpha) * xp.expm1(_negative(X, xp)))


@kernel("elu_grad", place=BOTH, dtypes=REALS)
def elu_grad(X, Out_grad, Out, *, alpha, xp):
    return xp.where(X > 0, Out_grad, Out_grad * (Out + X.dtype.type(alpha)))


@kernel("elu_grad_grad", place=BOTH, dtypes=REALS)
def elu_grad_grad(X, grad_out, grad_x_grad, *, alpha, xp):
    slope = X.dtype.type(alpha) * xp.exp(_negative(X, xp)) * grad_x_grad
    return xp.where(X > 0, X.dtype.type(0), slope * grad_out), xp.where(X > 0, grad_x_grad, slope)


@kernel("selu", place=BOTH, dtypes=REALS)
def selu(X, *, scale, alpha, xp):
    kind = X.dtype.type
    return xp.where(X > 0, kind(scale) * X, kind(scale * alpha) * xp.expm1(_negative(X, xp)))


@kernel("selu_grad", place=BOTH, dtypes=REALS)
def selu_grad(Out, Out_grad, *, scale, alpha, xp):
    kind = Out.dtype.type
    return Out_grad * xp.where(Out > 0, kind(scale), Out + kind(scale * alpha))


@kernel("celu", place=BOTH, dtypes=REALS)
def celu(X, *, alpha, xp):
    kind = X.dtype.type
    low = kind(alpha) * xp.expm1(_toward(X, alpha, xp))
    return xp.maximum(X, kind(0)) + xp.minimum(low, kind(0))


@kernel("celu_grad", place=BOTH, dtypes=REALS)
def celu_grad(X, Out_grad, *, alpha, xp):
    return xp.where(X > 0, Out_grad, Out_grad * xp.exp(_toward(X, alpha, xp)))


@kernel("celu_grad_grad", place=BOTH, dtypes=REALS)
def celu_grad_grad(X, grad_out, grad_x_grad, *, alpha, xp):
    kind = X.dtype.type
    slope = grad_x_grad * xp.exp(_toward(X, alpha, xp))
    return xp.where(X > 0, kind(0), slope * grad_out / kind(alpha)), xp.where(X > 0, grad_x_grad, slope)


@kernel("thresholded_relu", place=BOTH, dtypes=REALS)
def thresholded_relu(X, *, threshold, out=None, xp):
    return xp.multiply(X, X > threshold, out=out, dtype=X.dtype)


@kernel("thresholded_relu_grad", place=BOTH, dtypes=REALS)
def thresholded_relu_grad(X, Out_grad, *, threshold, out=None, xp):
    return xp.multiply(Out_grad, X > threshold, out=out, dtype=X.dtype)


@kernel("brelu", place=BOTH, dtypes=REALS)
def brelu(X, *, t_min, t_max, out=None, xp):
    return _clip(X, t_min, t_max, out, xp)


@kernel("brelu_grad", place=BOTH, dtypes=REALS)
def brelu_grad(X, Out_grad, *, t_min, t_max, out=None, xp):
    return _inside(X, Out_grad, t_min, t_max, out, xp)


@kernel("softshrink", place=BOTH, dtypes=REALS)
def softshrink(X, *, lambda_, xp):
    kind = X.dtype.type
    return xp.where(X > lambda_, X - kind(lambda_), xp.where(X < -lambda_, X + kind(lambda_), X * kind(0)))


@kernel("softshrink_grad", place=BOTH, dtypes=REALS)
def softshrink_grad(X, Out_grad, *, lambda_, out=None, xp):
    return xp.multiply(Out_grad, (X > lambda_) | (X < -lambda_), out=out, dtype=X.dtype)


@kernel("hard_shrink", place=BOTH, dtypes=REALS)
def hard_shrink(X, *, threshold, out=None, xp):
    return xp.multiply(X, (X > threshold) | (X < -threshold), out=out, dtype=X.dtype)


@kernel("hard_shrink_grad", place=BOTH, dtypes=REALS)
def hard_shrink_grad(X, Out_grad, *, threshold, out=None, xp):
    return xp.multiply(Out_grad, (X > threshold) | (X < -threshold), out=out, dtype=X.dtype)


@kernel("hard_sigmoid", place=BOTH, dtypes=REALS)
def hard_sigmoid(X, *, slope, offset, out=None, xp):
    kind = X.dtype.type
    y = xp.empty_like(X) if out is None else out
    xp.multiply(X, kind(slope), out=y)
    y += kind(offset)
    return _clip(y, 0.0, 1.0, y, xp)


@kernel("hard_sigmoid_grad", place=BOTH, dtypes=REALS)
def hard_sigmoid_grad(Out, Out_grad, *, slope, xp):
    return _inside(Out, Out_grad, 0.0, 1.0, None, xp) * Out.dtype.type(slope)


@kernel("hard_swish", place=BOTH, dtypes=REALS)
def hard_swish(X, *, threshold, scale, offset, xp):
    kind = X.dtype.type
    y = xp.empty_like(X)
    xp.add(X, kind(offset), out=y)
    _clip(y, 0.0, threshold, y, xp)
    y /= kind(scale)
    y *= X  # last, so that it overflows no sooner than the result
    return y


@kernel("hard_swish_grad", place=BOTH, dtypes=REALS)
def hard_swish_grad(X, Out_grad, *, threshold, scale, offset, xp):
    kind = X.dtype.type
    shifted = X + kind(offset)
    slope = xp.where(shifted < threshold, (shifted > 0) * (X + shifted), kind(threshold))
    return Out_grad * slope / kind(scale)


def _clip(x, low, high, out, xp):
    kind = x.dtype.type
    y = xp.empty_like(x) if out is None else out
    xp.maximum(x, kind(low), out=y)
    return xp.minimum(y, kind(high), out=y)


def _inside(x, grad, low, high, out, xp):
    """grad where low < x < high, else 0."""
    return xp.multiply(grad, (x > low) & (x < high), out=out, dtype=x.dtype)


def _negative(x, xp):
    """min(x, 0): keeps exp from overflowing where its value is not used."""
    return xp.minimum(x, x.dtype.type(0))


def _toward(x, alpha, xp):
    """x / alpha where x <= 0, else 0."""
    return _negative(x, xp) / x.dtype.type(alpha)
