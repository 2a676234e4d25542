"""What functions of this folder share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import oprack
from oprack.errors import InvalidArgumentError
from oprack.layers import Variable
from oprack.types import FLOATS

from oprack_paddle.state import dtype_name as dtype_name
from oprack_paddle.state import get_default_dtype

Axis = int | Sequence[int] | None


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor, or stands for one in a program."""
    return isinstance(value, oprack.Tensor | Variable)


def tensor(value: Any, like: Any = None) -> Any:
    """A number, list or array as a tensor, of the dtype of another one if there is one; tensors as they are."""
    if is_tensor(value):
        return value
    return oprack.to_tensor(value, dtype=None if like is None else like.dtype)


def floating(x: Any) -> Any:
    """Integers and bools as numbers of the default dtype."""
    return x if x.dtype in FLOATS or str(x.dtype).startswith("complex") else x.astype(get_default_dtype())


def axis_in(axis: int, ndim: int, name: str) -> int:
    """A dim counted from the front.

    Raises:
        InvalidArgumentError: There is none of that number.
    """
    if not -max(ndim, 1) <= axis < max(ndim, 1):
        raise InvalidArgumentError(f"{name}: axis is {axis}; expected one from {-ndim} to {ndim - 1}")
    return axis % max(ndim, 1)


def plain(value: Any) -> Any:
    """A tensor as the number or list that it holds, within lists as well; everything else as it is."""
    if isinstance(value, oprack.Tensor):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [plain(v) if not isinstance(v, oprack.Tensor) or v.size != 1 else v.item() for v in value]
    return value


def numbers(function: Callable[..., Any], *tensors: Any, dtype: Any = None) -> Any:
    """A tensor of what a function of NumPy computes of tensors; it is not recorded."""
    return oprack.to_tensor(np.asarray(function(*[np.asarray(t) for t in tensors])), dtype=dtype)


def reduced(loss: Any, reduction: str, name: str) -> Any:
    """The losses of examples, as their mean or sum.

    Raises:
        InvalidArgumentError: The reduction is none of the three.
    """
    if reduction not in ("none", "mean", "sum"):
        raise InvalidArgumentError(f"{name}: reduction is {reduction!r}; expected 'none', 'mean' or 'sum'")
    return loss if reduction == "none" else loss.mean() if reduction == "mean" else loss.sum()


def cast_to(x: Any, dtype: Any) -> Any:
    """A tensor in another dtype; None leaves it."""
    return x if dtype is None else x.astype(dtype_name(dtype))


def promoted(x: Any, y: Any) -> tuple[Any, Any]:
    """Two tensors in the dtype that holds both, where one is complex or both are floating."""
    if x.dtype == y.dtype or not is_tensor(y):
        return x, y
    wide = str(np.promote_types(x.dtype, y.dtype))
    return x if x.dtype == wide else oprack.astype(x, wide), y if y.dtype == wide else oprack.astype(y, wide)
