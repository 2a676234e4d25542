"""Random tensors; `oprack.seed` fixes what they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from oprack import functional as F
from oprack.errors import InvalidArgumentError
from oprack.types import VarType, dtype_name

if TYPE_CHECKING:
    from oprack import Tensor

Shape = int | Sequence[Any]


def rand(shape: Shape, dtype: object = None) -> Tensor:
    """Draws numbers that are uniformly distributed in [0, 1).

    Args:
        shape: Sizes of the dims; one number makes a vector.
        dtype: Dtype of the result; None: float32.

    Returns:
        Tensor of the given shape.

    Raises:
        InvalidArgumentError: dtype is a size, as in `rand(2, 3)`; sizes go in a list.
    """
    return uniform(_sizes("rand", shape, dtype), dtype, 0.0, 1.0)


def randn(shape: Shape, dtype: object = None) -> Tensor:
    """Draws numbers from the normal distribution of mean 0 and standard deviation 1.

    Args:
        shape: Sizes of the dims; one number makes a vector.
        dtype: Dtype of the result; None: float32.

    Returns:
        Tensor of the given shape.

    Raises:
        InvalidArgumentError: dtype is a size, as in `randn(2, 3)`; sizes go in a list.
    """
    return F.gaussian_random(shape=_sizes("randn", shape, dtype), dtype=dtype_name(dtype or "float32"))


def uniform(shape: Shape, dtype: object = None, min: float = -1.0, max: float = 1.0) -> Tensor:
    """Draws numbers that are uniformly distributed in [min, max).

    Args:
        shape: Sizes of the dims; one number makes a vector.
        dtype: Dtype of the result; None: float32.
        min: The lower bound.
        max: The upper bound.

    Returns:
        Tensor of the given shape.

    Raises:
        InvalidArgumentError: dtype is a size, as in `uniform(2, 3)`; sizes go in a list.
    """
    sizes = _sizes("uniform", shape, dtype)
    return F.uniform_random(shape=sizes, dtype=dtype_name(dtype or "float32"), min=float(min), max=float(max))


def normal(mean: Any = 0.0, std: Any = 1.0, shape: Shape | None = None) -> Tensor:
    """Draws numbers from normal distributions.

    Args:
        mean: The mean, a number or a tensor with one for each element.
        std: The standard deviation, a number or a tensor with one for each element.
        shape: Sizes of the dims, if mean and std are numbers; a tensor among them decides otherwise.

    Returns:
        Tensor of float32.

    Raises:
        InvalidArgumentError: Mean and std are numbers and shape is None.
    """
    like = next((v for v in (mean, std) if hasattr(v, "shape")), None)
    if like is None and shape is None:
        raise InvalidArgumentError(
            "normal: shape is missing; expected a list of sizes beside a mean and std of numbers"
        )
    sizes = _sizes("normal", shape, None) if like is None else list(like.shape)
    return F.gaussian_random(shape=sizes) * std + mean


def randint(low: int = 0, high: int | None = None, shape: Shape = (1,), dtype: object = None) -> Tensor:
    """Draws integers that are uniformly distributed in [low, high).

    Args:
        low: The least integer; without high, the end, and integers start from 0.
        high: The end, which is not drawn; None: as above.
        shape: Sizes of the dims; one number makes a vector.
        dtype: Dtype of the result; None: int64.

    Returns:
        Tensor of the given shape.
    """
    low, high = (0, low) if high is None else (low, high)
    return F.randint(
        low=int(low), high=int(high), shape=_sizes("randint", shape, None), dtype=dtype_name(dtype or "int64")
    )


def randperm(n: int, dtype: object = "int64") -> Tensor:
    """Draws a random permutation of the integers from 0 to n - 1.

    Args:
        n: How many.
        dtype: Dtype of the result.

    Returns:
        Tensor [n].
    """
    return F.randperm(n=int(n), dtype=dtype_name(dtype))


def multinomial(x: Tensor, num_samples: int = 1, replacement: bool = False) -> Tensor:
    """Draws places in the last dim with probabilities proportional to x.

    Args:
        x: Weights [..., places], floats of at least 0; they need not add up to 1.
        num_samples: How many to draw from each row.
        replacement: Whether a place may be drawn several times.

    Returns:
        Tensor of int64 [..., num_samples].
    """
    return F.multinomial(x, num_samples=int(num_samples), replacement=replacement)


def _sizes(call: str, shape: Any, dtype: Any) -> list[Any]:
    if isinstance(dtype, int) and not isinstance(dtype, VarType):  # oprack.randn(2, 3)
        raise InvalidArgumentError(
            f"{call}: dtype is {dtype!r}; expected the name of one; sizes go in a list: "
            f"oprack.{call}([{shape}, {dtype}])"
        )
    return [shape] if isinstance(shape, int) or getattr(shape, "ndim", 1) == 0 else list(shape)
