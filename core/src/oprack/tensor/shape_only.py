"""Values without elements: inputs whose buffer an op does not need, and runs that ask only for shapes."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, NoReturn

import numpy as np

from oprack.errors import NoBufferError


class Ledger:
    """What a run with ShapeArrays would hold.

    Attributes:
        held: Bytes of the arrays that exist now.
        peak: The most bytes that existed at a time.
    """

    def __init__(self) -> None:
        self.held = self.peak = 0

    def take(self, size: int) -> None:
        """An array of so many bytes was made."""
        self.held += size
        self.peak = max(self.peak, self.held)


LEDGER: ContextVar[Ledger | None] = ContextVar("oprack_ledger", default=None)


@contextlib.contextmanager
def use_ledger(ledger: Ledger) -> Iterator[Ledger]:
    """Write down in a ledger what ShapeArrays made inside a with block hold."""
    token = LEDGER.set(ledger)
    try:
        yield ledger
    finally:
        LEDGER.reset(token)


class _Memory:
    """The memory that an array and its views would share."""

    __slots__ = ("ledger", "size")

    def __init__(self, size: int) -> None:
        self.ledger, self.size = LEDGER.get(), size
        if self.ledger is not None:
            self.ledger.take(size)

    def __del__(self) -> None:
        if self.ledger is not None:
            self.ledger.held -= self.size


class ShapeArray(np.ndarray):
    """Shape and dtype of an array. One element in memory stands for all, so the values that are read mean nothing.

    Views, element-wise functions, np.concatenate and the like give ShapeArrays; what needs values is a TypeError.
    """

    memory: Any
    elementless = True

    def __array_finalize__(self, source: Any) -> None:
        """A view belongs to the memory of what it is a view of."""
        self.memory = getattr(source, "memory", None)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **_: Any) -> Any:
        """The result of an element-wise function: its shape by broadcasting, its dtype by the function itself."""
        if method != "__call__" or ufunc.signature is not None:
            return NotImplemented
        if out is not None:  # in place: nothing changes
            return out[0] if len(out) == 1 else out
        shape = np.broadcast_shapes(*[np.shape(x) for x in inputs])
        ones = [np.ones((), x.dtype) if hasattr(x, "dtype") else x for x in inputs]
        with np.errstate(all="ignore"):
            made = ufunc(*ones)
        if isinstance(made, tuple):
            return tuple([shape_array(shape, m.dtype) for m in made])
        return shape_array(shape, made.dtype)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """The result of one of NumPy's functions, of those that need no values."""
        if func in _VIEWS:
            return super().__array_function__(func, types, args, kwargs)
        known = _FUNCTIONS.get(func)
        return NotImplemented if known is None else known(*args, **kwargs)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Elements do not exist, so none changes."""

    def copy(self, order: Any = "C") -> ShapeArray:
        """An array of this shape with memory of its own."""
        return shape_array(self.shape, self.dtype)

    def astype(self, dtype: Any, *args: Any, copy: bool = True, **kwargs: Any) -> ShapeArray:  # type: ignore[override]
        """An array of this shape and another dtype."""
        return self if not copy and self.dtype == dtype else shape_array(self.shape, dtype)


def shape_array(shape: Sequence[int], dtype: Any, view_of: Any = None) -> ShapeArray:
    """An array of this shape without elements.

    Args:
        shape: Its dims.
        dtype: Its dtype.
        view_of: The ShapeArray whose memory it shares; None gives it memory of its own.

    Returns:
        The array.
    """
    dtype, dims = np.dtype(dtype), tuple(shape)
    made = np.ndarray.__new__(ShapeArray, dims, dtype, np.zeros(1, dtype), 0, (0,) * len(dims))
    made.memory = _Memory(made.nbytes) if view_of is None else view_of.memory
    return made


def _concatenate(arrays: Sequence[Any], axis: int | None = 0, **_: Any) -> ShapeArray:
    first = arrays[0]
    dtype = np.result_type(*[a.dtype for a in arrays])
    if axis is None:
        return shape_array((sum(a.size for a in arrays),), dtype)
    dims = list(first.shape)
    dims[axis] = sum(a.shape[axis] for a in arrays)
    return shape_array(dims, dtype)


def _like(x: Any, *_: Any, dtype: Any = None, shape: Any = None, **__: Any) -> ShapeArray:
    dims = x.shape if shape is None else (shape,) if isinstance(shape, int) else shape
    return shape_array(dims, x.dtype if dtype is None else dtype)


def _full_like(x: Any, value: Any, dtype: Any = None, shape: Any = None, **_: Any) -> ShapeArray:
    return _like(x, dtype=dtype, shape=shape)


_VIEWS = {
    *(np.moveaxis, np.transpose, np.swapaxes, np.reshape, np.ravel, np.squeeze, np.expand_dims, np.broadcast_to),
    *(np.shape, np.ndim, np.size),
}
_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.concatenate: _concatenate,
    np.zeros_like: _like,
    np.ones_like: _like,
    np.empty_like: _like,
    np.full_like: _full_like,
    np.vdot: lambda a, b: np.float64("nan"),
}


_READS = (
    "__array__ __array_ufunc__ __array_function__ __getitem__ __setitem__ __iter__ __contains__ __bool__ __int__ "
    "__float__ __complex__ __index__ __neg__ __pos__ __abs__ __invert__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__"
).split()
_ELEMENT = np.empty((), np.bool_)
_BINARY = "add sub mul truediv floordiv mod divmod pow matmul lshift rshift and or xor".split()


class ShapeOnly:
    """Shape and dtype of an array whose memory may have been freed; reading anything else raises NoBufferError.

    Args:
        like: An array, or another object with shape and dtype.
        where: Names of op, slot and kernel, for the error.
    """

    __slots__ = ("dtype", "shape", "where")
    __hash__ = object.__hash__

    def __init__(self, like: Any, where: str = "") -> None:
        self.shape: tuple[int, ...] = like.shape
        self.dtype: np.dtype = like.dtype
        self.where = where

    @property
    def ndim(self) -> int:
        """Number of dims."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return int(self.dtype.itemsize)

    @property
    def nbytes(self) -> int:
        """Size of the array in bytes, whether its memory still exists or not."""
        return self.size * self.itemsize

    def reshape(self, *shape: Any) -> ShapeOnly:
        """The stand-in in another shape, as ndarray.reshape; kernels use it to compare shapes.

        Args:
            shape: Sizes, or a list of them.

        Returns:
            A stand-in for the reshaped array.
        """
        # NumPy computes the new shape, on one element broadcast to the old one.
        return self._like(np.broadcast_to(_ELEMENT, self.shape).reshape(*shape))

    def transpose(self, *axes: Any) -> ShapeOnly:
        """The stand-in with its dims permuted, as ndarray.transpose.

        Args:
            axes: The order of dims, or a list of them; default: reversed.

        Returns:
            A stand-in for the transposed array.
        """
        return self._like(np.broadcast_to(_ELEMENT, self.shape).transpose(*axes))

    def _like(self, array: np.ndarray) -> ShapeOnly:
        stand_in = ShapeOnly(array, self.where)
        stand_in.dtype = self.dtype
        return stand_in

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-D tensor")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"ShapeOnly({self.dtype}{list(self.shape)})"

    def __getattr__(self, name: str) -> NoReturn:
        self._refuse(f"its attribute {name!r}")

    def _refuse(self, what: str) -> NoReturn:
        raise NoBufferError(
            f"{self.where or 'a kernel'} reads {what}, but only shape and dtype of this input are available: the op "
            "lists the slot in no_need_buffer_vars, so that its memory may be freed. Remove the slot from that list, "
            "or read no more than shape, ndim, size and dtype (reshape and transpose work, too)"
        )


def _refused(name: str) -> Any:
    def method(self: ShapeOnly, *_: Any, **__: Any) -> NoReturn:
        self._refuse(f"its values ({name})")

    return method


for _name in (*_READS, *(f"__{i}{n}__" for n in _BINARY for i in ("", "r", "i"))):
    setattr(ShapeOnly, _name, _refused(_name))
