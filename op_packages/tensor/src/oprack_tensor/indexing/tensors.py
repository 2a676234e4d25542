"""x[...] and x[...] = v of eager tensors: basic indexing as of Variables, and by masks, lists and integer tensors."""

from __future__ import annotations

import math
from itertools import takewhile
from typing import Any

import numpy as np
from oprack.cache import Cache
from oprack.errors import InvalidArgumentError
from oprack.functional.creation import to_tensor
from oprack.functional.generated import function
from oprack.functional.op_function import op_function
from oprack.interpreter.current import current_or_none
from oprack.interpreter.op_expr import attr_key
from oprack.packs.changes import on_change

from oprack_tensor.indexing import operators

Steps = list[tuple[str, dict[str, Any], Any]]
_plans = Cache(4096)
on_change(_plans.clear)


def getitem(self: Any, index: Any) -> Any:
    """x[2], x[1:3], x[..., 0], x[None], x[mask], x[[0, 2]]; gradients flow back through it.

    Args:
        self: The tensor.
        index: What is taken of it.

    Returns:
        The part.

    Raises:
        InvalidArgumentError: The index is out of range, or of a kind that has no op.
    """
    x = self
    items = index if isinstance(index, tuple) else (index,)
    if any(_advanced(i) for i in items):
        return function("gather_nd")(x.reshape([-1]), _places(x, items)[..., None])
    basic = tuple([_basic(i) for i in items])
    key = (x.shape, *[(i.start, i.stop, i.step) if type(i) is slice else i for i in basic])
    steps: Steps | None = _plans[key]
    if steps is None:
        steps = _plans[key] = _Probe(x).steps_of(basic)
    for op_type, attrs, frozen in steps:
        call = op_function(op_type).table[(current_or_none(), x._meta, *frozen)]
        x = call(x) if call is not None else function(op_type)(x, **attrs)
    return x


class _Probe:
    """Stands for a tensor of that shape while its index is read, and takes down the ops that are asked for."""

    def __init__(self, x: Any) -> None:
        self.shape, self.dtype, self.name = x.shape, x.dtype, x.describe()
        self.steps: Steps = []

    def _apply(self, op_type: str, inputs: dict[str, Any], attrs: dict[str, Any], slots: Any = ()) -> _Probe:
        self.steps.append((op_type, attrs, attr_key(attrs)))
        return self

    def steps_of(self, index: tuple[Any, ...]) -> Steps:
        """The ops that an index stands for, each applied to the result of the one before.

        Returns:
            (op type, attributes, key of the attributes) of each op, in order.
        """
        operators.getitem(self, index)  # type: ignore[arg-type]  # it records what a Tensor would be asked
        return self.steps


def setitem(self: Any, index: Any, value: Any) -> None:
    """Write into this tensor; recorded when it, or the value, wants a gradient.

    Args:
        self: The tensor.
        index: Which elements are replaced.
        value: A number, an array or a tensor that broadcasts to them.

    Raises:
        InvalidArgumentError: The index is out of range, or the value does not fit.
    """
    x = self  # by op scatter on the flat tensor
    where = _places(x, index if isinstance(index, tuple) else (index,))
    new: Any = (
        value if hasattr(value, "_meta") else to_tensor(_spread(value, x._meta.dtype, where.shape), place=x.place)
    )
    if new.dtype != x.dtype:
        new = new.astype(x.dtype)
    if new.shape != where.shape:
        new = _repeated(new, where.shape, x)
    if not where.size:
        return
    flat = x.reshape([-1])
    flat_new = function("scatter")(flat, where.reshape(-1), new.reshape([-1]), overwrite=True)
    result = flat_new.reshape(list(x.shape))
    x._overwrite(result._value, result._node, "x[...] = value")


def _repeated(new: Any, to: tuple[int, ...], x: Any) -> Any:
    """A tensor broadcast to the places that it shall fill. Raises InvalidArgumentError where it does not fit."""
    ones = sum(1 for _ in takewhile(lambda n: n == 1, new.shape[: max(new.ndim - len(to), 0)]))
    shape = new.shape[ones:]
    if not _broadcasts(shape, to):
        raise InvalidArgumentError(f"{x.describe()}: a part of shape {list(to)} can't take {new.describe()}")
    return new.reshape(list(shape)).expand(list(to)) if math.prod(to) else new


def _spread(value: Any, dtype: Any, shape: tuple[int, ...]) -> np.ndarray:
    """A number or an array as many times as the shape has places, where it fits."""
    array = np.asarray(value, dtype)
    return np.broadcast_to(array, shape) if _broadcasts(array.shape, shape) else array


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """Whether an array of the one shape can be repeated to the other."""
    return len(shape) <= len(to) and all(n in (1, m) for n, m in zip(reversed(shape), reversed(to), strict=False))


def _advanced(item: Any) -> bool:
    if type(item) is int or type(item) is slice or item is None:
        return False
    if isinstance(item, list | np.ndarray):
        return not (isinstance(item, np.ndarray) and item.ndim == 0)
    return hasattr(item, "_meta") and (item.ndim > 0 or item.dtype == "bool")


def _basic(item: Any) -> Any:
    """Numbers instead of tensors and arrays of one element."""
    if type(item) is int:
        return item
    if isinstance(item, slice):
        if all([p is None or type(p) is int for p in (item.start, item.stop, item.step)]):
            return item
        return slice(*(None if p is None else int(p) for p in (item.start, item.stop, item.step)))
    if item is None or item is Ellipsis or isinstance(item, bool | int):
        return item
    return int(item)


def _places(x: Any, items: tuple[Any, ...]) -> np.ndarray:
    """Numbers of the chosen elements in the flat tensor, by NumPy's own rules of indexing."""
    host = tuple(np.asarray(i) if hasattr(i, "_meta") else i for i in items)
    numbers = np.arange(math.prod(x.shape), dtype=np.int64).reshape(x.shape)
    try:
        return np.ascontiguousarray(numbers[host])
    except IndexError as error:
        raise InvalidArgumentError(f"{x.describe()}: {error}") from None
