"""ShapeOnly: what a kernel receives for an input whose buffer its op does not need."""

from __future__ import annotations

import math
from typing import Any, NoReturn

import numpy as np

from oprack.errors import NoBufferError

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
