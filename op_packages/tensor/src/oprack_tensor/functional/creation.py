"""Tensors made of numbers: `oprack.zeros([2, 3])`, `oprack.arange(5)` and their like."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from oprack import functional as F
from oprack.errors import InvalidArgumentError
from oprack.types import FLOATS, INTEGERS, VarType, dtype_name

from oprack_tensor.dims import range_length
from oprack_tensor.ranges import rounded_by_attribute

if TYPE_CHECKING:
    from oprack import Tensor

Shape = int | Sequence[Any]


def zeros(shape: Shape, dtype: object = None) -> Tensor:
    """Makes a tensor of zeros.

    Args:
        shape: Sizes of the dims; one number makes a vector.
        dtype: Dtype of the result; None: float32.

    Returns:
        Tensor of the given shape.

    Raises:
        InvalidArgumentError: dtype is a size, as in `zeros(2, 3)`; sizes go in a list.
    """
    return _filled("zeros", shape, 0.0, dtype or "float32")


def ones(shape: Shape, dtype: object = None) -> Tensor:
    """Makes a tensor of ones.

    Args:
        shape: Sizes of the dims; one number makes a vector.
        dtype: Dtype of the result; None: float32.

    Returns:
        Tensor of the given shape.

    Raises:
        InvalidArgumentError: dtype is a size, as in `ones(2, 3)`; sizes go in a list.
    """
    return _filled("ones", shape, 1.0, dtype or "float32")


def full(shape: Shape, fill_value: Any, dtype: object = None) -> Tensor:
    """Makes a tensor that holds one number everywhere.

    Args:
        shape: Sizes of the dims; one number makes a vector.
        fill_value: The number.
        dtype: Dtype of the result; None: float32, as in Paddle 2, whatever the number is.

    Returns:
        Tensor of the given shape.

    Raises:
        InvalidArgumentError: dtype is an integer; sizes go in a list.
    """
    return _filled("full", shape, fill_value, dtype or "float32")


def empty(shape: Shape, dtype: object = None) -> Tensor:
    """Makes a tensor that is meant to be written to.

    Its elements are 0, so that no run depends on what memory held before.

    Args:
        shape: Sizes of the dims; one number makes a vector.
        dtype: Dtype of the result; None: float32.

    Returns:
        Tensor of the given shape.

    Raises:
        InvalidArgumentError: dtype is a size, as in `empty(2, 3)`; sizes go in a list.
    """
    return _filled("empty", shape, 0.0, dtype or "float32")


def zeros_like(x: Tensor, dtype: object = None) -> Tensor:
    """Makes a tensor of zeros in the shape of another.

    Args:
        x: The tensor whose shape to take.
        dtype: Dtype of the result; None: that of x.

    Returns:
        Tensor of the shape of x.
    """
    return full_like(x, 0, dtype)


def ones_like(x: Tensor, dtype: object = None) -> Tensor:
    """Makes a tensor of ones in the shape of another.

    Args:
        x: The tensor whose shape to take.
        dtype: Dtype of the result; None: that of x.

    Returns:
        Tensor of the shape of x.
    """
    return full_like(x, 1, dtype)


def full_like(x: Tensor, fill_value: float, dtype: object = None) -> Tensor:
    """Makes a tensor that holds one number everywhere, in the shape of another.

    Args:
        x: The tensor whose shape to take.
        fill_value: The number.
        dtype: Dtype of the result; None: that of x.

    Returns:
        Tensor of the shape of x.
    """
    name = dtype_name(dtype or x.dtype)
    if rounded_by_attribute(name, fill_value):
        return F.fill_any_like(x, value=0.0, dtype=name) + fill_value
    return F.fill_any_like(x, value=float(fill_value), dtype=name)


def empty_like(x: Tensor, dtype: object = None) -> Tensor:
    """Makes a tensor that is meant to be written to, in the shape of another; its elements are 0.

    Args:
        x: The tensor whose shape to take.
        dtype: Dtype of the result; None: that of x.

    Returns:
        Tensor of the shape of x.
    """
    return full_like(x, 0, dtype)


def arange(start: float = 0, end: float | None = None, step: float = 1, dtype: object = None) -> Tensor:
    r"""Makes numbers at equal steps: $$start + k \cdot step$$ for k = 0, 1, ... while it is before end.

    Args:
        start: The first number; without end, this is the end, and numbers start from 0.
        end: The end, which is not reached; None: as above.
        step: The difference between two numbers, positive or negative.
        dtype: Dtype of the result; None: int64, or float32 if one of the numbers is a float.

    Returns:
        Tensor of one dim.

    Raises:
        InvalidArgumentError: step is 0.
    """
    if end is None:
        start, end = 0, start
    if not hasattr(step, "dtype") and not step:
        raise InvalidArgumentError(f"arange: step is {step}; expected a number other than 0")
    name = dtype_name(dtype) if dtype else max((_dtype_of(v) for v in (start, end, step)), key=_width)
    made = F.range(*(_one("arange", v, name) for v in (start, end, step)))
    known = all(isinstance(v, numbers.Real) for v in (start, end, step)) and name in FLOATS | INTEGERS
    if known and hasattr(made, "desc"):
        start, end, step = (np.asarray(v).astype(name).item() for v in (start, end, step))
        return _of_length(made, range_length(start, end, step) if step else 0)
    return made


def linspace(start: float, stop: float, num: int, dtype: object = None) -> Tensor:
    """Makes num numbers at equal distances, $$start + k (stop - start) / (num - 1)$$.

    Args:
        start: The first number.
        stop: The last number.
        num: How many numbers.
        dtype: Dtype of the result; None: float32.

    Returns:
        Tensor [num].
    """
    name = dtype_name(dtype or "float32")
    ends = (_one("linspace", v if hasattr(v, "desc") else float(v), name) for v in (start, stop))
    made = F.linspace(*ends, _one("linspace", num if hasattr(num, "desc") else int(num), "int32"), dtype=name)
    return made if hasattr(num, "desc") else _of_length(made, int(num))


def logspace(start: float, stop: float, num: int, base: float = 10.0, dtype: object = None) -> Tensor:
    """Makes num powers of a base at equal ratios, $$base^{start + k (stop - start) / (num - 1)}$$.

    Args:
        start: The first exponent.
        stop: The last exponent.
        num: How many numbers.
        base: The base of the powers.
        dtype: Dtype of the result; None: float32.

    Returns:
        Tensor [num].
    """
    return base ** linspace(start, stop, num, dtype)


def eye(num_rows: int, num_columns: int | None = None, dtype: object = None) -> Tensor:
    """Makes a matrix with ones on the diagonal and zeros elsewhere.

    Args:
        num_rows: Number of rows.
        num_columns: Number of columns; None: as many as rows.
        dtype: Dtype of the result; None: float32.

    Returns:
        Tensor [num_rows, num_columns].
    """
    columns = num_rows if num_columns is None else num_columns
    return F.eye(num_rows=int(num_rows), num_columns=int(columns), dtype=dtype_name(dtype or "float32"))


def tril(x: Tensor, diagonal: int = 0) -> Tensor:
    """Keeps the lower triangle of matrices and writes zeros above it.

    Args:
        x: Matrices in the last two dims.
        diagonal: The last diagonal that is kept: 0 the main one, positive ones above it, negative ones below.

    Returns:
        Tensor of the shape and dtype of x.
    """
    return F.tril_triu(x, diagonal=int(diagonal), lower=True)


def triu(x: Tensor, diagonal: int = 0) -> Tensor:
    """Keeps the upper triangle of matrices and writes zeros below it.

    Args:
        x: Matrices in the last two dims.
        diagonal: The first diagonal that is kept: 0 the main one, positive ones above it, negative ones below.

    Returns:
        Tensor of the shape and dtype of x.
    """
    return F.tril_triu(x, diagonal=int(diagonal), lower=False)


def diag(x: Tensor, offset: int = 0, padding_value: float = 0.0) -> Tensor:
    """Makes a matrix with a vector on a diagonal, or takes a diagonal of a matrix.

    Args:
        x: A vector [n] or a matrix.
        offset: Which diagonal: 0 the main one, positive ones above it, negative ones below.
        padding_value: The number off the diagonal, if x is a vector.

    Returns:
        Tensor: a matrix if x is a vector, else a vector.
    """
    return F.diag_v2(x, offset=int(offset), padding_value=float(padding_value))


def meshgrid(*tensors: Any) -> list[Tensor]:
    """Makes the coordinates of a grid: for vectors of n, m ... elements, as many tensors [n, m, ...].

    Args:
        tensors: The coordinates along each dim, one by one or as one list; the first lies along dim 0.

    Returns:
        List of tensors, one per dim.
    """
    given = list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else list(tensors)
    return F.meshgrid(given)


_WIDTHS = ("bool", "int64", "float32", "complex64")


def _dtype_of(value: Any) -> str:
    """The dtype of a tensor made of a Python number."""
    if isinstance(value, bool):
        return "bool"
    if hasattr(value, "dtype"):
        return str(value.dtype)
    return "int64" if isinstance(value, int) else "complex64" if isinstance(value, complex) else "float32"


def _width(dtype: str) -> int:
    return _WIDTHS.index(dtype) if dtype in _WIDTHS else 1


def _one(call: str, value: Any, dtype: str) -> Tensor:
    """A number as a tensor [1]; one of a captured program, which is known when it runs, is a tensor already."""
    return value.astype(dtype).reshape([1]) if hasattr(value, "desc") else _filled(call, [1], value, dtype)


def _of_length(made: Tensor, length: int) -> Tensor:
    """Say how long a tensor of a captured program is: its op gets the numbers as tensors, which the run alone reads."""
    if hasattr(made, "desc"):
        made.desc.shape = (max(length, 0),)
    return made


def _filled(call: str, shape: Any, value: Any, dtype: Any) -> Tensor:
    if isinstance(dtype, int) and not isinstance(dtype, VarType):  # oprack.zeros(2, 3)
        raise InvalidArgumentError(
            f"{call}: dtype is {dtype!r}; expected the name of one; sizes go in a list: "
            f"oprack.{call}([{shape}, {dtype}])"
        )
    sizes = [shape] if isinstance(shape, int) or getattr(shape, "ndim", 1) == 0 else list(shape)
    text = repr(value) if not isinstance(value, bool) else str(int(value))
    return F.fill_constant(shape=sizes, dtype=dtype_name(dtype), value=float(value), str_value=text)
