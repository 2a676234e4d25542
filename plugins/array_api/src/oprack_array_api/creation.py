"""Functions of the standard that create tensors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from oprack import Tensor, to_tensor
from oprack import functional as F
from oprack.errors import InvalidArgumentError
from oprack.tensor import numpy_dtype

from oprack_array_api._operands import place_of
from oprack_array_api.dtypes import DEFAULTS, category, dtype_of, promoted

_FLOAT, _COMPLEX, _INT = DEFAULTS["real floating"], DEFAULTS["complex floating"], DEFAULTS["integral"]


def _shape(shape: Any) -> tuple[int, ...]:
    return tuple(int(n) for n in shape) if isinstance(shape, tuple | list) else (int(shape),)


def _default(value: Any) -> str:
    """The default dtype for a Python scalar."""
    if isinstance(value, bool):
        return "bool"
    return _INT if isinstance(value, int) else _COMPLEX if isinstance(value, complex) else _FLOAT


def _made(array: Any, dtype: Any, device: Any) -> Tensor:
    return to_tensor(np.asarray(array, numpy_dtype(dtype)), place=device)


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor of a tensor, an array, a scalar or nested lists.

    Args:
        obj: The values.
        dtype: Default: theirs; float32, complex64, int64 or bool for Python's numbers.
        device: Default: theirs, or the CPU.
        copy: True copies always; False never; None only where it must.

    Returns:
        The tensor; `obj` itself where nothing changes and copy is not True.

    Raises:
        ValueError: copy is False, but a copy is needed.
    """
    name = None if dtype is None else dtype_of(dtype)
    if isinstance(obj, Tensor):
        if name in (None, obj.dtype) and device in (None, obj.place):
            return obj.clone() if copy else obj
        _refuse(copy, obj.describe())
        found = obj if name is None else obj.astype(name)
        return found if device is None else found.to(device)
    if hasattr(obj, "__dlpack__") or hasattr(obj, "__array_interface__"):
        if copy is False:
            raise ValueError("asarray: memory of another library is copied; expected copy=None, or xp.from_dlpack(x)")
        array = obj if hasattr(obj, "__array_interface__") else np.from_dlpack(obj)
        return to_tensor(array if name is None else np.asarray(array, numpy_dtype(name)), place=device)
    _refuse(copy, f"a {type(obj).__name__}")
    obj = _plain(obj)
    if name is None:
        found = np.asarray(obj)
        kind = found.dtype.kind
        if kind == "i" and found.dtype != np.int64:
            found = found.astype(np.int64)
        name = {"f": _FLOAT, "c": _COMPLEX}.get(kind, found.dtype.name)
        if kind == "O":
            raise OverflowError(f"asarray: a number in {type(obj).__name__} is out of range of int64 and uint64")
        return _made(found, name, device)
    try:
        return _made(obj, name, device)
    except ValueError as error:
        raise InvalidArgumentError(f"asarray: the values do not make a tensor: {error}") from None


def _refuse(copy: bool | None, what: str) -> None:
    if copy is False:
        raise ValueError(f"asarray: {what} can't become such a tensor without a copy; expected copy=None or True")


def _plain(obj: Any) -> Any:
    """Nested lists with tensors as nested lists of numbers and arrays."""
    if isinstance(obj, Tensor):
        return obj.numpy()
    return [_plain(o) for o in obj] if isinstance(obj, list | tuple) else obj


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor with the values of another library's array, by the DLPack protocol.

    Args:
        x: An object with `__dlpack__`.
        device: Where the tensor shall be.
        copy: False refuses; the values are always copied, so that no write of the other library changes a tensor.

    Returns:
        The tensor.

    Raises:
        BufferError: copy is False, or the memory can't be read from here.
    """
    if isinstance(x, Tensor) and copy is False:
        return x.detach()
    if copy is False:
        raise BufferError("from_dlpack: tensors have memory of their own; expected copy=None or True")
    if hasattr(x, "__cuda_array_interface__"):
        return to_tensor(x, place=device)
    return to_tensor(np.from_dlpack(x), place=device)


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Makes numbers at equal steps, from start to before stop.

    Args:
        start: The first number; without stop, this is the end, and numbers start from 0.
        stop: The end, which is not reached; None: as above.
        step: The difference between two numbers.
        dtype: Dtype of the result; None: int64, or float32 if one of the numbers is a float.
        device: Place of the result; None: the CPU.

    Returns:
        Tensor of one dim.
    """
    if stop is None:
        start, stop = 0, start
    if dtype is None:
        dtype = _INT if all(isinstance(v, int) for v in (start, stop, step)) else _FLOAT
    count = max(math.ceil((stop - start) / step), 0)
    if category(dtype_of(dtype)) == "integral" and all(isinstance(v, int) for v in (start, stop, step)):
        count = len(range(start, stop, step))
        return _made(np.asarray(range(start, stop, step), dtype=numpy_dtype(dtype)) if count else [], dtype, device)
    return _made(start + step * np.arange(count, dtype=np.float64), dtype, device)


def linspace(
    start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: bool = True
) -> Tensor:
    """Makes `num` numbers at equal distances from start to stop.

    Args:
        start: The first number.
        stop: The last number.
        num: How many numbers.
        dtype: Dtype of the result; None: float32, or complex64 if one of the numbers is complex.
        device: Place of the result; None: the CPU.
        endpoint: Whether stop is among them.

    Returns:
        Tensor [num].
    """
    if dtype is None:
        dtype = _COMPLEX if isinstance(start, complex) or isinstance(stop, complex) else _FLOAT
    return _made(np.linspace(start, stop, num, endpoint=endpoint, dtype=numpy_dtype(dtype)), dtype, device)


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Makes a tensor that holds one number everywhere.

    Args:
        shape: The sizes, one number or a tuple.
        fill_value: The number.
        dtype: Dtype of the result; None: float32, int64, complex64 or bool, as the number is.
        device: Place of the result; None: the CPU.

    Returns:
        Tensor of the given shape.
    """
    name = _default(fill_value) if dtype is None else dtype_of(dtype)
    return _made(np.full(_shape(shape), fill_value, numpy_dtype(name)), name, device)


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Makes a tensor of zeros: memory of others is never shown.

    Args:
        shape: The sizes, one number or a tuple.
        dtype: Dtype of the result; None: float32.
        device: Place of the result; None: the CPU.

    Returns:
        Tensor of the given shape.
    """
    return full(shape, 0, dtype=dtype or _FLOAT, device=device)


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Makes a tensor of zeros.

    Args:
        shape: The sizes, one number or a tuple.
        dtype: Dtype of the result; None: float32.
        device: Place of the result; None: the CPU.

    Returns:
        Tensor of the given shape.
    """
    return full(shape, 0, dtype=dtype or _FLOAT, device=device)


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Makes a tensor of ones.

    Args:
        shape: The sizes, one number or a tuple.
        dtype: Dtype of the result; None: float32.
        device: Place of the result; None: the CPU.

    Returns:
        Tensor of the given shape.
    """
    return full(shape, 1, dtype=dtype or _FLOAT, device=device)


def full_like(x: Any, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Makes a tensor that holds one number everywhere, in the shape of another.

    Args:
        x: The tensor whose shape to take.
        fill_value: The number.
        dtype: Dtype of the result; None: that of x.
        device: Place of the result; None: that of x.

    Returns:
        Tensor of the shape of x.
    """
    return full(x.shape, fill_value, dtype=dtype or x.dtype, device=device or place_of(x))


def empty_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Makes a tensor of zeros in the shape of another: memory of others is never shown.

    Args:
        x: The tensor whose shape to take.
        dtype: Dtype of the result; None: that of x.
        device: Place of the result; None: that of x.

    Returns:
        Tensor of the shape of x.
    """
    return full_like(x, 0, dtype=dtype, device=device)


def zeros_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Makes a tensor of zeros in the shape of another.

    Args:
        x: The tensor whose shape to take.
        dtype: Dtype of the result; None: that of x.
        device: Place of the result; None: that of x.

    Returns:
        Tensor of the shape of x.
    """
    return full_like(x, 0, dtype=dtype, device=device)


def ones_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Makes a tensor of ones in the shape of another.

    Args:
        x: The tensor whose shape to take.
        dtype: Dtype of the result; None: that of x.
        device: Place of the result; None: that of x.

    Returns:
        Tensor of the shape of x.
    """
    return full_like(x, 1, dtype=dtype, device=device)


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None) -> Tensor:
    """Makes a matrix with ones on one diagonal and zeros elsewhere.

    Args:
        n_rows: Number of rows.
        n_cols: Number of columns; None: as many as rows.
        k: Which diagonal: 0 the main one, positive ones above it, negative ones below.
        dtype: Dtype of the result; None: float32.
        device: Place of the result; None: the CPU.

    Returns:
        Tensor [n_rows, n_cols].
    """
    columns = n_rows if n_cols is None else n_cols
    name = dtype_of(dtype or _FLOAT)
    return _made(np.eye(n_rows, columns, k, dtype=numpy_dtype(name)), name, device)


def meshgrid(*arrays: Any, indexing: str = "xy") -> list[Tensor]:
    """The coordinates of a grid, by op meshgrid.

    Args:
        arrays: The coordinates along each dim, of one dtype.
        indexing: "ij" for one dim after the other; "xy" has the first two swapped.

    Returns:
        A tensor for each dim.

    Raises:
        InvalidArgumentError: indexing is something else.
    """
    if indexing not in ("xy", "ij"):
        raise InvalidArgumentError(f"meshgrid: indexing is {indexing!r}; expected 'xy' or 'ij'")
    if len(arrays) < 2:
        return [a.clone() for a in arrays]
    dtype = arrays[0].dtype
    for a in arrays[1:]:
        dtype = promoted(dtype, a.dtype)
    swapped = indexing == "xy"
    given = [arrays[1], arrays[0], *arrays[2:]] if swapped else list(arrays)
    found = F.meshgrid([a if a.dtype == dtype else a.astype(dtype) for a in given])
    if swapped:
        found = [found[1], found[0], *found[2:]]
    return list(found)


def tril(x: Any, /, *, k: int = 0) -> Tensor:
    """Keeps the elements on and below a diagonal of matrices, and writes zeros above.

    Args:
        x: Matrices in the last two dims.
        k: Which diagonal: 0 the main one, positive ones above it, negative ones below.

    Returns:
        Tensor of the shape and dtype of x.
    """
    return F.tril_triu(x, diagonal=k, lower=True)


def triu(x: Any, /, *, k: int = 0) -> Tensor:
    """Keeps the elements on and above a diagonal of matrices, and writes zeros below.

    Args:
        x: Matrices in the last two dims.
        k: Which diagonal: 0 the main one, positive ones above it, negative ones below.

    Returns:
        Tensor of the shape and dtype of x.
    """
    return F.tril_triu(x, diagonal=k, lower=False)
