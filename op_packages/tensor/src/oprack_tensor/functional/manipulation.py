"""Tensors put together, cut and rearranged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from oprack import functional as F
from oprack.errors import InvalidArgumentError
from oprack.interpreter.symbol import declared_shape

if TYPE_CHECKING:
    from oprack import Tensor


def concat(x: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Joins tensors along a dim.

    Args:
        x: Tensors of one dtype, whose shapes agree but for the dim.
        axis: The dim; negative ones count from the end.

    Returns:
        Tensor with the sum of the sizes along axis.
    """
    return F.concat(list(x), axis=int(axis))


def stack(x: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Joins tensors along a new dim.

    Args:
        x: Tensors of one shape and dtype.
        axis: Where the new dim stands in the result; negative ones count from the end.

    Returns:
        Tensor with one dim more.
    """
    return F.stack(list(x), axis=int(axis))


def unstack(x: Tensor, axis: int = 0, num: int | None = None) -> list[Tensor]:
    """Cuts a tensor into its slices along a dim, which they lose: the opposite of stack.

    Args:
        x: The tensor.
        axis: The dim; negative ones count from the end.
        num: The number of slices, where a program does not know the size of the dim; None: that size.

    Returns:
        List of tensors.
    """
    return x.unbind(axis) if num is None else F.unbind(x, axis=int(axis), num_outputs=int(num))


def chunk(x: Tensor, chunks: int, axis: int = 0) -> list[Tensor]:
    """Cuts a tensor into parts of equal size along a dim; the last is smaller if the size is no multiple.

    Args:
        x: The tensor.
        chunks: How many parts; there may be fewer, where the size is small.
        axis: The dim.

    Returns:
        List of tensors.
    """
    size = x.shape[axis]
    each = -(-size // chunks)
    sections = [min(each, size - at) for at in range(0, size, each)]
    return x.split(sections, axis)


def t(x: Tensor) -> Tensor:
    """Transposes a matrix; a vector, or a tensor without dims, stays as it is.

    Args:
        x: A tensor of at most two dims.

    Returns:
        Tensor with the dims swapped.

    Raises:
        InvalidArgumentError: x has more dims.
    """
    if x.ndim > 2:
        raise InvalidArgumentError(
            f"t: x has shape {list(x.shape)} of {x.ndim} dims; expected at most 2; for more, give the order of the "
            f"dims: x.transpose({list(range(x.ndim))[::-1]})"
        )
    return x if x.ndim < 2 else F.transpose2(x, axis=[1, 0])


def view(x: Tensor, *shape: Any) -> Tensor:
    """Gives the elements another shape: reshape, under PyTorch's name.

    Args:
        x: The tensor.
        shape: The sizes, one by one or as one list; one may be -1, the size that is left over.

    Returns:
        Tensor of that shape.
    """
    return x.reshape(*shape)


def permute(x: Tensor, *dims: Any) -> Tensor:
    """Reorders the dims: transpose with all of them, under PyTorch's name.

    Args:
        x: The tensor.
        dims: The dims of x in their new order, one by one or as one list.

    Returns:
        Tensor with reordered dims.
    """
    return x.transpose(list(dims[0]) if len(dims) == 1 and isinstance(dims[0], list | tuple) else list(dims))


def contiguous(x: Tensor) -> Tensor:
    """x itself: a tensor's elements lie one after the other."""
    return x


def dim(x: Tensor) -> int:
    """Number of dims."""
    return x.ndim


def element_size(x: Tensor) -> int:
    """Bytes of an element."""
    return np.dtype(x.dtype).itemsize


def moveaxis(x: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """Moves dims to other places; the others keep their order.

    Args:
        x: The tensor.
        source: The dim, or dims, to move.
        destination: Where each of them stands in the result.

    Returns:
        Tensor with reordered dims.
    """
    rank = x.ndim
    sources = [d % rank for d in _ints(source)]
    order = [d for d in range(rank) if d not in sources]
    for place, d in sorted(zip((d % rank for d in _ints(destination)), sources, strict=True)):
        order.insert(place, d)
    return F.transpose2(x, axis=order)


def swapaxes(x: Tensor, axis0: int, axis1: int) -> Tensor:
    """Swaps two dims.

    Args:
        x: The tensor.
        axis0: One dim.
        axis1: The other.

    Returns:
        Tensor with the two dims swapped.
    """
    order = list(range(x.ndim))
    order[axis0], order[axis1] = order[axis1], order[axis0]
    return F.transpose2(x, axis=order)


def expand_as(x: Tensor, y: Tensor) -> Tensor:
    """Broadcasts a tensor to the shape of another.

    Args:
        x: The tensor.
        y: The tensor whose shape to take.

    Returns:
        Tensor of the shape of y and the dtype of x.
    """
    return x.expand(list(y.shape))


def broadcast_to(x: Tensor, shape: Sequence[int]) -> Tensor:
    """Broadcasts a tensor to a shape.

    Args:
        x: The tensor.
        shape: The sizes; -1 keeps the size of x.

    Returns:
        Tensor of that shape.
    """
    return x.expand(list(shape))


def repeat_interleave(x: Tensor, repeats: int | Tensor, axis: int | None = None) -> Tensor:
    """Repeats each slice of a dim several times in a row.

    Args:
        x: The tensor.
        repeats: How often, one number or a tensor of integers with one per slice.
        axis: The dim; None: of the flattened tensor.

    Returns:
        Tensor with more slices along axis, flat if axis is None.
    """
    x, axis = (x.reshape([-1]), 0) if axis is None else (x, axis)
    if isinstance(repeats, int):
        return F.repeat_interleave(x, Repeats=repeats, dim=int(axis))
    return F.repeat_interleave(x, repeats, dim=int(axis))


def flip(x: Tensor, axis: int | Sequence[int]) -> Tensor:
    """Reverses the order of elements along dims.

    Args:
        x: The tensor.
        axis: The dim, or dims.

    Returns:
        Tensor of the shape of x.
    """
    return F.flip(x, axis=_ints(axis))


def roll(x: Tensor, shifts: int | Sequence[int], axis: int | Sequence[int] | None = None) -> Tensor:
    """Shifts elements along dims; those that leave at the end come in at the start.

    Args:
        x: The tensor.
        shifts: By how many places, one number for each dim.
        axis: The dim, or dims; None: elements are shifted as if x were flat.

    Returns:
        Tensor of the shape of x.
    """
    if axis is None:
        return F.roll(x.reshape([-1]), shifts=_ints(shifts), axis=[0]).reshape(list(x.shape))
    return F.roll(x, shifts=_ints(shifts), axis=_ints(axis))


def index_select(x: Tensor, index: Tensor, axis: int = 0) -> Tensor:
    """Selects slices along a dim by index.

    Args:
        x: The tensor.
        index: The slices, int32 or int64 [n].
        axis: The dim.

    Returns:
        Tensor of the shape of x with n slices along axis.
    """
    return F.index_select(x, index, dim=int(axis))


def masked_fill(x: Tensor, mask: Tensor, value: float | Tensor) -> Tensor:
    """Replaces the elements where a mask is true.

    Args:
        x: The tensor.
        mask: A tensor of bool that broadcasts to the shape of x.
        value: A number, or a tensor that broadcasts to the shape of x.

    Returns:
        Tensor of the shape and dtype of x.
    """
    filler: Any = value if hasattr(value, "shape") else F.fill_any_like(x, value=float(value))
    return F.where(mask.expand(list(x.shape)), filler.expand(list(x.shape)), x)


def take_along_axis(arr: Tensor, indices: Tensor, axis: int) -> Tensor:
    """Takes elements along a dim by index: out[i, j] = arr[indices[i, j], j] for dim 0; PyTorch's gather.

    Args:
        arr: The tensor.
        indices: Places along axis, int32 or int64, with as many dims as arr.
        axis: The dim.

    Returns:
        Tensor of the shape of indices and the dtype of arr.
    """
    return F.take_along_axis(arr, indices, Axis=int(axis))


def put_along_axis(arr: Tensor, indices: Tensor, values: Any, axis: int, reduce: str = "assign") -> Tensor:
    """Writes elements along a dim by index into a copy; PyTorch's scatter.

    out[indices[i, j], j] = values[i, j] for dim 0.

    Args:
        arr: The tensor to copy.
        indices: Places along axis, int32 or int64, with as many dims as arr.
        values: A number, or a tensor that broadcasts to the shape of indices.
        axis: The dim.
        reduce: What happens to the element that is there: "assign" replaces it, "add" adds to it, "mul" multiplies it.

    Returns:
        Tensor of the shape and dtype of arr.
    """
    values = values if hasattr(values, "shape") else F.fill_constant(shape=[1], dtype=arr.dtype, value=float(values))
    return F.put_along_axis(arr, indices, values.expand(list(indices.shape)), Axis=int(axis), Reduce=reduce)


def scatter(x: Tensor, index: Tensor, updates: Tensor, overwrite: bool = True) -> Tensor:
    """Replaces rows of a copy of a tensor, or writes sums of rows to it.

    Args:
        x: The tensor to copy.
        index: Rows of x, int32 or int64 [n].
        updates: The new rows [n, ...], of the dtype of x.
        overwrite: Whether the last of several updates of a row holds; False: a row is the sum of its updates.

    Returns:
        Tensor of the shape and dtype of x.
    """
    return F.scatter(x, index, updates, overwrite=overwrite)


def where(condition: Tensor, x: Any = None, y: Any = None) -> Any:
    """Chooses elements of x where a condition is true, and of y elsewhere.

    Args:
        condition: A tensor of bool.
        x: A tensor that broadcasts with condition, or a number, which takes the dtype of y.
        y: A tensor that broadcasts with condition, or a number, which takes the dtype of x.

    Returns:
        Tensor of the broadcast shape; without x and y, the places where condition is true, as `nonzero(condition,
        as_tuple=True)`.

    Raises:
        InvalidArgumentError: One of x and y is given alone.
    """
    if x is None and y is None:
        return nonzero(condition, as_tuple=True)
    if x is None or y is None:
        raise InvalidArgumentError("where: one of x and y is None; expected both, or neither")
    x, y = _both(condition, x, y)
    if x.dtype != y.dtype:
        x, y = x + F.fill_any_like(y, value=0.0), y + F.fill_any_like(x, value=0.0)
    shape = _broadcast(*map(declared_shape, (condition, x, y)))
    return F.where(*(v if list(declared_shape(v)) == shape else v.expand(shape) for v in (condition, x, y)))


def nonzero(x: Tensor, as_tuple: bool = False) -> Any:
    """Finds the elements that are not 0.

    Args:
        x: The tensor.
        as_tuple: Whether the coordinates of each dim come as a tensor of their own.

    Returns:
        Coordinates as int64 [found, dims]; with as_tuple, a tuple of tensors [found], one per dim.
    """
    found = F.where_index(x)
    return tuple(found[:, d] for d in range(x.ndim)) if as_tuple else found


def unique(
    x: Tensor,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    dtype: object = "int64",
) -> Any:
    """Finds the distinct elements, in ascending order.

    Args:
        x: The tensor.
        return_index: Whether to return where each of them occurs first.
        return_inverse: Whether to return which of them each element of x is.
        return_counts: Whether to return how often each of them occurs.
        axis: The dim whose slices are compared; None: the elements.
        dtype: Dtype of the additional results, int32 or int64.

    Returns:
        The distinct elements; if more is asked for, a tuple of them and what was asked for, in the order of the
        parameters.
    """
    asked = [s for s, on in (("Indices", return_index), ("Index", return_inverse), ("Counts", return_counts)) if on]
    found = F.unique(
        x,
        return_index=return_index,
        return_inverse=return_inverse,
        return_counts=return_counts,
        axis=[] if axis is None else [int(axis)],
        dtype=dtype,
        is_sorted=True,
        num_outputs=dict.fromkeys(asked, 1),
    )
    return (found.out, *(getattr(found, slot.lower()) for slot in asked)) if asked else found.out


def numel(x: Tensor) -> Any:
    """How many elements there are, as a tensor of int64."""
    return F.size(x)


def one_hot(x: Tensor, num_classes: int) -> Tensor:
    """Encodes integers as rows with a single 1.

    Args:
        x: Integers from 0 to num_classes - 1, any shape.
        num_classes: Length of a row.

    Returns:
        Tensor of float32 [*x.shape, num_classes].
    """
    return F.one_hot_v2(x, depth=int(num_classes))


def _ints(value: Any) -> list[int]:
    return [int(v) for v in value] if isinstance(value, list | tuple) else [int(value)]


def _both(condition: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """x and y as tensors; a number has the dtype of the other."""
    like = next((v for v in (x, y) if hasattr(v, "shape")), None)
    dtype = "float32" if like is None else like.dtype
    made = [
        v if hasattr(v, "shape") else F.fill_constant(shape=[1], dtype=dtype, value=float(v), str_value=repr(v))
        for v in (x, y)
    ]
    return made[0], made[1]


def _broadcast(*shapes: Sequence[int]) -> list[int]:
    """The shape to which these are broadcast; sizes that a program does not know yet, -1, stay as they are."""
    rank = max(map(len, shapes))
    columns: Any = zip(*([1] * (rank - len(s)) + list(s) for s in shapes), strict=True)
    return [next((size for size in sizes if size not in (1, -1)), min(sizes)) for sizes in columns]
