"""Activations whose op has another name or other arguments than Paddle 2; the others are ops: relu, silu, mish ..."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oprack import functional as F

if TYPE_CHECKING:
    from oprack import Tensor


def log_softmax(x: Tensor, axis: int = -1, dtype: object = None) -> Tensor:
    r"""$$x_i - \log \sum_j e^{x_j}$$ along a dim."""
    return F.log_softmax(x if dtype is None else x.astype(dtype), axis=int(axis))


def log_sigmoid(x: Tensor) -> Tensor:
    r"""$$-\log(1 + e^{-x})$$"""
    return F.logsigmoid(x)


def elu(x: Tensor, alpha: float = 1.0) -> Tensor:
    r"""$$x$$ where it is positive, else $$\alpha (e^x - 1)$$."""
    return F.elu(x, alpha=float(alpha))


def gelu(x: Tensor, approximate: bool = False) -> Tensor:
    r"""$$x \Phi(x)$$ with the normal distribution; approximate: by tanh."""
    return F.gelu(x, approximate=bool(approximate))


def leaky_relu(x: Tensor, negative_slope: float = 0.01, **attrs: Any) -> Tensor:
    """x where it is positive, else negative_slope times x. attrs: alpha, as op leaky_relu calls the slope."""
    return F.leaky_relu(x, **{"alpha": float(negative_slope)} | attrs)


def hardtanh(x: Tensor, min: float = -1.0, max: float = 1.0) -> Tensor:
    """x cut to between two numbers."""
    return x.clip(min, max)


def hardsigmoid(x: Tensor, slope: float = 1 / 6, offset: float = 0.5) -> Tensor:
    r"""$$\min(1, \max(0, slope \cdot x + offset))$$"""
    return F.hard_sigmoid(x, slope=float(slope), offset=float(offset))


def hardswish(x: Tensor) -> Tensor:
    r"""$$x \min(6, \max(0, x + 3)) / 6$$"""
    return F.hard_swish(x)


def hardshrink(x: Tensor, threshold: float = 0.5) -> Tensor:
    """x, with 0 where it is from -threshold to threshold."""
    return F.hard_shrink(x, threshold=float(threshold))


def softshrink(x: Tensor, threshold: float = 0.5) -> Tensor:
    """x moved towards 0 by the threshold, at most to 0."""
    return F.softshrink(x, lambda_=float(threshold))


def tanhshrink(x: Tensor) -> Tensor:
    r"""$$x - \tanh x$$"""
    return F.tanh_shrink(x)


def prelu(x: Tensor, weight: Tensor, data_format: str = "NCHW") -> Tensor:
    """x where it is positive, else weight times x; weight: [1], or one for each channel."""
    mode = "all" if weight.size == 1 else "channel"
    return F.prelu(x, weight, mode=mode, data_format="NCHW" if data_format.startswith("NC") else "NHWC")


def glu(x: Tensor, axis: int = -1) -> Tensor:
    r"""$$a \, \sigma(b)$$ of the two halves of x along a dim."""
    a, b = x.split(2, axis)
    return a * F.sigmoid(b)
