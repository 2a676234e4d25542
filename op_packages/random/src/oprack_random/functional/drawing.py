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
    """Uniformly distributed numbers from 0 to 1; dtype: default float32."""
    return uniform(_sizes("rand", shape, dtype), dtype, 0.0, 1.0)


def randn(shape: Shape, dtype: object = None) -> Tensor:
    """Normally distributed numbers of mean 0 and standard deviation 1; dtype: default float32."""
    return F.gaussian_random(shape=_sizes("randn", shape, dtype), dtype=dtype_name(dtype or "float32"))


def uniform(shape: Shape, dtype: object = None, min: float = -1.0, max: float = 1.0) -> Tensor:
    """Uniformly distributed numbers from min to max; dtype: default float32."""
    sizes = _sizes("uniform", shape, dtype)
    return F.uniform_random(shape=sizes, dtype=dtype_name(dtype or "float32"), min=float(min), max=float(max))


def normal(mean: Any = 0.0, std: Any = 1.0, shape: Shape | None = None) -> Tensor:
    """Normally distributed numbers; mean and std may be tensors, whose shape the result then has."""
    like = next((v for v in (mean, std) if hasattr(v, "shape")), None)
    if like is None and shape is None:
        raise InvalidArgumentError(
            "normal: shape is missing; expected a list of sizes beside a mean and std of numbers"
        )
    sizes = _sizes("normal", shape, None) if like is None else list(like.shape)
    return F.gaussian_random(shape=sizes) * std + mean


def randint(low: int = 0, high: int | None = None, shape: Shape = (1,), dtype: object = None) -> Tensor:
    """Integers from low to high - 1; with one number, from 0 to it. dtype: default int64."""
    low, high = (0, low) if high is None else (low, high)
    return F.randint(
        low=int(low), high=int(high), shape=_sizes("randint", shape, None), dtype=dtype_name(dtype or "int64")
    )


def randperm(n: int, dtype: object = "int64") -> Tensor:
    """The integers from 0 to n - 1 in random order."""
    return F.randperm(n=int(n), dtype=dtype_name(dtype))


def multinomial(x: Tensor, num_samples: int = 1, replacement: bool = False) -> Tensor:
    """Places drawn by weights in the last dim: int64 [..., num_samples]."""
    return F.multinomial(x, num_samples=int(num_samples), replacement=replacement)


def _sizes(call: str, shape: Any, dtype: Any) -> list[Any]:
    if isinstance(dtype, int) and not isinstance(dtype, VarType):  # oprack.randn(2, 3)
        raise InvalidArgumentError(
            f"{call}: dtype is {dtype!r}; expected the name of one; sizes go in a list: "
            f"oprack.{call}([{shape}, {dtype}])"
        )
    return [shape] if isinstance(shape, int) or getattr(shape, "ndim", 1) == 0 else list(shape)
