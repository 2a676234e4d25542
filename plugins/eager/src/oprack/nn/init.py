"""Fills parameters in place, under PyTorch's names: `oprack.nn.init.xavier_uniform_(layer.weight)`.

Each function draws by an initializer of `oprack.initializer`, from the stream of `oprack.seed`, and returns the tensor.
A matrix is [in_features, out_features] here.
"""

from __future__ import annotations

from typing import Any

from oprack import initializer
from oprack.nn.parameter import filled

__all__ = [
    "constant_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]


def _fill(tensor: Any, how: Any) -> Any:
    tensor.set_value(filled(how, tensor.shape, tensor.dtype, tensor.name or "filled", tensor.place))
    return tensor


def constant_(tensor: Any, val: float) -> Any:
    """Fill a tensor with a number.

    Args:
        tensor: A floating tensor of any shape.
        val: The number.

    Returns:
        The tensor itself.
    """
    return _fill(tensor, initializer.Constant(val))


def zeros_(tensor: Any) -> Any:
    """Fill a tensor with 0 and return it."""
    return constant_(tensor, 0.0)


def ones_(tensor: Any) -> Any:
    """Fill a tensor with 1 and return it."""
    return constant_(tensor, 1.0)


def normal_(tensor: Any, mean: float = 0.0, std: float = 1.0) -> Any:
    """Fill a tensor from a normal distribution.

    Args:
        tensor: A floating tensor of any shape.
        mean: The mean.
        std: The standard deviation.

    Returns:
        The tensor itself.
    """
    return _fill(tensor, initializer.Normal(mean, std))


def uniform_(tensor: Any, a: float = 0.0, b: float = 1.0) -> Any:
    """Fill a tensor from a uniform distribution.

    Args:
        tensor: A floating tensor of any shape.
        a: The lower bound.
        b: The upper bound.

    Returns:
        The tensor itself.
    """
    return _fill(tensor, initializer.Uniform(a, b))


def xavier_uniform_(tensor: Any) -> Any:
    """Fill a weight as `initializer.XavierUniform` does, and return it."""
    return _fill(tensor, initializer.XavierUniform())


def xavier_normal_(tensor: Any) -> Any:
    """Fill a weight as `initializer.XavierNormal` does, and return it."""
    return _fill(tensor, initializer.XavierNormal())


def kaiming_uniform_(tensor: Any, a: float = 0.0, *, nonlinearity: str = "leaky_relu") -> Any:
    """Fill a weight as `initializer.KaimingUniform` does, by the size of its input.

    Args:
        tensor: A floating tensor of two dims or more.
        a: The slope of a leaky ReLU below 0.
        nonlinearity: What comes after the layer: "relu", "leaky_relu" ...

    Returns:
        The tensor itself.
    """
    return _fill(tensor, initializer.KaimingUniform(negative_slope=a, nonlinearity=nonlinearity))


def kaiming_normal_(tensor: Any, a: float = 0.0, *, nonlinearity: str = "leaky_relu") -> Any:
    """Fill a weight as `initializer.KaimingNormal` does, by the size of its input.

    Args:
        tensor: A floating tensor of two dims or more.
        a: The slope of a leaky ReLU below 0.
        nonlinearity: What comes after the layer: "relu", "leaky_relu" ...

    Returns:
        The tensor itself.
    """
    return _fill(tensor, initializer.KaimingNormal(negative_slope=a, nonlinearity=nonlinearity))


def orthogonal_(tensor: Any, gain: float = 1.0) -> Any:
    """Fill a weight with an orthogonal matrix.

    Args:
        tensor: A floating tensor of two dims or more.
        gain: A factor.

    Returns:
        The tensor itself.
    """
    return _fill(tensor, initializer.Orthogonal(gain))
