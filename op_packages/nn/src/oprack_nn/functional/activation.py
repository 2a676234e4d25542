"""Activations whose op has another name or other arguments than Paddle 2; the others are ops: relu, silu, mish ..."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oprack import functional as F

if TYPE_CHECKING:
    from oprack import Tensor


def softmax(x: Tensor, axis: int = -1, **attrs: Any) -> Tensor:
    r"""Normalizes along a dim to positive numbers of sum 1, $$e^{x_i} / \sum_j e^{x_j}$$.

    Args:
        x: The tensor.
        axis: The dim.
        attrs: Attributes of op softmax.

    Returns:
        Tensor of the same shape and dtype.
    """
    return F.softmax(x, axis=axis, **attrs)


def log_softmax(x: Tensor, axis: int = -1, dtype: object = None) -> Tensor:
    r"""Takes the logarithm of softmax along a dim, without overflow.

    $$x_i - \log \sum_j e^{x_j}$$

    Args:
        x: Tensor of floats, any shape.
        axis: The dim.
        dtype: The dtype in which to compute, and of the result; None: that of x.

    Returns:
        Tensor of the shape of x.
    """
    return F.log_softmax(x if dtype is None else x.astype(dtype), axis=int(axis))


def log_sigmoid(x: Tensor) -> Tensor:
    r"""Takes the logarithm of the sigmoid without overflow, $$-\log(1 + e^{-x})$$.

    Args:
        x: Tensor of floats, any shape.

    Returns:
        Tensor of the shape and dtype of x.
    """
    return F.logsigmoid(x)


def elu(x: Tensor, alpha: float = 1.0) -> Tensor:
    r"""Applies the exponential linear unit: $$x$$ where it is positive, else $$\alpha (e^x - 1)$$.

    Args:
        x: Tensor of floats, any shape.
        alpha: The limit towards minus infinity, negated.

    Returns:
        Tensor of the shape and dtype of x.
    """
    return F.elu(x, alpha=float(alpha))


def gelu(x: Tensor, approximate: bool = False) -> Tensor:
    r"""Applies the Gaussian error linear unit, $$x \Phi(x)$$ with the normal distribution function $$\Phi$$.

    Args:
        x: Tensor of floats, any shape.
        approximate: Whether to compute $$\Phi$$ by its approximation with tanh.

    Returns:
        Tensor of the shape and dtype of x.
    """
    return F.gelu(x, approximate=bool(approximate))


def leaky_relu(x: Tensor, negative_slope: float = 0.01, **attrs: Any) -> Tensor:
    """Applies the leaky rectified linear unit: x where it is positive, else negative_slope times x.

    Args:
        x: Tensor of floats, any shape.
        negative_slope: The slope for negative elements.
        attrs: Attributes of op leaky_relu: alpha, which is its name of the slope and goes before negative_slope.

    Returns:
        Tensor of the shape and dtype of x.
    """
    return F.leaky_relu(x, **{"alpha": float(negative_slope)} | attrs)


def hardtanh(x: Tensor, min: float = -1.0, max: float = 1.0) -> Tensor:
    """Cuts elements to the interval [min, max].

    Args:
        x: Tensor of floats, any shape.
        min: The lower bound.
        max: The upper bound.

    Returns:
        Tensor of the shape and dtype of x.
    """
    return x.clip(min, max)


def hardsigmoid(x: Tensor, slope: float = 1 / 6, offset: float = 0.5) -> Tensor:
    r"""Applies a piecewise linear approximation of the sigmoid: $$\min(1, \max(0, slope \cdot x + offset))$$.

    Args:
        x: Tensor of floats, any shape.
        slope: The slope of the middle part.
        offset: The value at 0.

    Returns:
        Tensor of the shape and dtype of x.
    """
    return F.hard_sigmoid(x, slope=float(slope), offset=float(offset))


def hardswish(x: Tensor) -> Tensor:
    r"""Applies a piecewise form of swish (Howard et al., 2019): $$x \min(6, \max(0, x + 3)) / 6$$.

    Args:
        x: Tensor of floats, any shape.

    Returns:
        Tensor of the shape and dtype of x.
    """
    return F.hard_swish(x)


def hardshrink(x: Tensor, threshold: float = 0.5) -> Tensor:
    """Replaces elements between -threshold and threshold by 0.

    Args:
        x: Tensor of floats, any shape.
        threshold: The largest magnitude that becomes 0.

    Returns:
        Tensor of the shape and dtype of x.
    """
    return F.hard_shrink(x, threshold=float(threshold))


def softshrink(x: Tensor, threshold: float = 0.5) -> Tensor:
    """Moves elements towards 0 by threshold; those between -threshold and threshold become 0.

    Args:
        x: Tensor of floats, any shape.
        threshold: The distance, at least 0.

    Returns:
        Tensor of the shape and dtype of x.
    """
    return F.softshrink(x, lambda_=float(threshold))


def tanhshrink(x: Tensor) -> Tensor:
    r"""Subtracts the hyperbolic tangent, $$x - \tanh x$$.

    Args:
        x: Tensor of floats, any shape.

    Returns:
        Tensor of the shape and dtype of x.
    """
    return F.tanh_shrink(x)


def prelu(x: Tensor, weight: Tensor, data_format: str = "NCHW") -> Tensor:
    """Applies a leaky rectified linear unit with a learned slope: x where it is positive, else weight times x.

    Args:
        x: Tensor of floats; with a slope per channel, [N, C, ...] or [N, ..., C].
        weight: The slopes, [1] for one or [C] for one per channel.
        data_format: "NCHW", "NCL" and the like when channels are dim 1, "NHWC" and the like when they are last.

    Returns:
        Tensor of the shape and dtype of x.
    """
    mode = "all" if weight.size == 1 else "channel"
    return F.prelu(x, weight, mode=mode, data_format="NCHW" if data_format.startswith("NC") else "NHWC")


def glu(x: Tensor, axis: int = -1) -> Tensor:
    r"""Applies the gated linear unit: the first half of x times the sigmoid of the second, $$a \, \sigma(b)$$.

    Args:
        x: Tensor of floats whose size along axis is even.
        axis: The dim that is halved.

    Returns:
        Tensor of the shape of x, with half the size along axis.
    """
    a, b = x.split(2, axis)
    return a * F.sigmoid(b)
