"""x[...] and x[...] = v of tensors: basic indexing as Variables have it, and by masks, lists and integer tensors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from oprack.errors import InvalidArgumentError
from oprack.layers.indexing import indexed


def get_item(x: Any, index: Any) -> Any:
    """Part of x; basic indices by slice, others by gather_nd. Raises InvalidArgumentError."""
    from oprack.interpreter.functions import function

    items = index if isinstance(index, tuple) else (index,)
    if not any(_advanced(i) for i in items):
        return indexed(x, tuple(_basic(i) for i in items))
    where = _places(x, items)
    return function("gather_nd")(x.reshape([-1]), where[..., None])


def set_item(x: Any, index: Any, value: Any) -> None:
    """Replace part of x: the elements at these places become those of `value`, by scatter on the flat tensor."""
    from oprack.interpreter.functions import function
    from oprack.interpreter.tensor import to_tensor

    where = _places(x, index if isinstance(index, tuple) else (index,))
    new = value if hasattr(value, "_kind") else to_tensor(np.asarray(value, x._kind.dtype), place=x.place)
    if new.dtype != x.dtype:
        new = new.astype(x.dtype)
    try:
        np.broadcast_shapes(new.shape, where.shape)
    except ValueError:
        raise InvalidArgumentError(
            f"{x.describe()}: a part of shape {list(where.shape)} can't take {new.describe()}"
        ) from None
    if new.shape != where.shape:
        new = new + type(x).like(np.zeros(where.shape), new)
    flat = x.reshape([-1])
    flat_new = function("scatter")(flat, where.reshape(-1), new.reshape([-1]), overwrite=True)
    result = flat_new.reshape(list(x.shape))
    x._overwrite(result._value, result._node, "x[...] = value")


def _advanced(item: Any) -> bool:
    if isinstance(item, list | np.ndarray):
        return not (isinstance(item, np.ndarray) and item.ndim == 0)
    return hasattr(item, "_kind") and (item.ndim > 0 or item.dtype == "bool")


def _basic(item: Any) -> Any:
    """Numbers instead of tensors and arrays of one element."""
    if isinstance(item, slice):
        return slice(*(None if p is None else int(p) for p in (item.start, item.stop, item.step)))
    if item is None or item is Ellipsis or isinstance(item, bool | int):
        return item
    return int(item)


def _places(x: Any, items: tuple[Any, ...]) -> np.ndarray:
    """Numbers of the chosen elements in the flat tensor, by NumPy's own rules of indexing."""
    host = tuple(np.asarray(i) if hasattr(i, "_kind") else i for i in items)
    numbers = np.arange(math.prod(x.shape), dtype=np.int64).reshape(x.shape)
    try:
        return np.ascontiguousarray(numbers[host])
    except IndexError as error:
        raise InvalidArgumentError(f"{x.describe()}: {error}") from None
