"""Functions of the standard that change shapes, put tensors together and take them apart."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack import Tensor
from oprack import functional as F
from oprack.errors import InvalidArgumentError

from oprack_array_api._operands import axes_of, cast, constant, named, numel, place_of, require_tensor
from oprack_array_api.creation import asarray, zeros
from oprack_array_api.dtypes import result_type


def broadcast_to(x: Any, /, shape: tuple[int, ...]) -> Tensor:
    """Broadcasts a tensor to a shape; the result has memory of its own.

    Args:
        x: A tensor.
        shape: The sizes.

    Returns:
        Tensor of that shape.

    Raises:
        ValueError: x does not broadcast to it.
    """
    shape = tuple(shape)
    if np.broadcast_shapes(x.shape, shape) != shape:
        raise ValueError(f"broadcast_to: {named(x)} does not broadcast to {list(shape)}")
    return x.clone() if x.shape == shape else F.expand_v2(x, shape=list(shape))


def broadcast_arrays(*arrays: Any) -> list[Tensor]:
    """All in the shape to which they broadcast."""
    shape = np.broadcast_shapes(*(a.shape for a in arrays))
    return [broadcast_to(a, shape) for a in arrays]


def concat(arrays: Any, /, *, axis: int | None = 0) -> Tensor:
    """Joins tensors along a dim, in their common dtype.

    Args:
        arrays: The tensors, whose shapes agree but for the dim.
        axis: The dim; None: of the flattened tensors.

    Returns:
        Tensor with the sum of the sizes along axis.
    """
    dtype = result_type(*arrays)
    given = [cast(a, dtype) for a in arrays]
    if axis is None:
        given, axis = [reshape(a, (-1,)) for a in given], 0
    (axis,) = axes_of(axis, given[0].ndim, "concat")
    return F.concat(given, axis=axis)


def stack(arrays: Any, /, *, axis: int = 0) -> Tensor:
    """Joins tensors along a new dim, in their common dtype.

    Args:
        arrays: The tensors, of one shape.
        axis: Where the new dim stands in the result.

    Returns:
        Tensor with one dim more.
    """
    dtype = result_type(*arrays)
    return F.stack([cast(a, dtype) for a in arrays], axis=axis)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """Cuts a tensor into its slices along a dim, which they lose.

    Args:
        x: A tensor.
        axis: The dim.

    Returns:
        Tuple of tensors.
    """
    (at,) = axes_of(axis, x.ndim, "unstack")
    return tuple(F.unbind(x, axis=at)) if x.shape[at] else ()


def expand_dims(x: Any, /, axis: Any) -> Tensor:
    """Inserts dims of size 1.

    Args:
        x: A tensor.
        axis: Their places in the result, one number or a tuple.

    Returns:
        Tensor with more dims.

    Raises:
        ValueError: A place is named twice.
    """
    rank = x.ndim + (len(axis) if isinstance(axis, tuple) else 1)
    places = axes_of(axis, rank, "expand_dims")
    if len(set(places)) != len(places):
        raise ValueError(f"expand_dims: axis {axis} names a place twice")
    return reshape(x, _with_ones(x.shape, places))


def _with_ones(shape: tuple[int, ...], places: tuple[int, ...]) -> tuple[int, ...]:
    sizes = iter(shape)
    return tuple(1 if i in places else next(sizes) for i in range(len(shape) + len(places)))


def squeeze(x: Any, /, axis: Any) -> Tensor:
    """Removes dims of size 1.

    Args:
        x: A tensor.
        axis: The dims, one number or a tuple.

    Returns:
        Tensor with fewer dims.

    Raises:
        ValueError: One of them has another size.
    """
    places = axes_of(axis, x.ndim, "squeeze")
    if any(x.shape[a] != 1 for a in places):
        raise ValueError(f"squeeze: {named(x)} has a size other than 1 at axis {axis}")
    return reshape(x, tuple(n for i, n in enumerate(x.shape) if i not in places))


def reshape(x: Any, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Tensor:
    """The elements in another shape, one dim of which may be -1.

    Args:
        x: A tensor.
        shape: The sizes.
        copy: The result has memory of its own, so False is refused.

    Returns:
        The tensor.

    Raises:
        ValueError: copy is False.
    """
    if copy is False:
        raise ValueError("reshape: tensors do not share memory; expected copy=None or True")
    sizes = [int(n) for n in shape]
    if -1 in sizes:
        known = int(np.prod([n for n in sizes if n != -1], dtype=np.int64))
        if sizes.count(-1) > 1 or not known or numel(x) % known:
            raise InvalidArgumentError(f"reshape: {named(x)} does not fit shape {sizes}")
        sizes[sizes.index(-1)] = numel(x) // known
    if int(np.prod(sizes, dtype=np.int64)) != numel(x):
        raise InvalidArgumentError(f"reshape: {named(x)} does not fit shape {sizes}")
    if not numel(x) and tuple(sizes) != x.shape:  # in the op's attribute a 0 stands for the size that is there
        return empty_of(x, sizes)
    return x.reshape(sizes) if tuple(sizes) != x.shape else x.clone()


def permute_dims(x: Any, /, axes: tuple[int, ...]) -> Tensor:
    """Reorders the dims.

    Args:
        x: A tensor.
        axes: The dims of x in their new order.

    Returns:
        Tensor with reordered dims.
    """
    order = axes_of(axes, x.ndim, "permute_dims")
    return F.transpose2(x, axis=list(order)) if x.ndim else x.clone()


def moveaxis(x: Any, source: Any, destination: Any, /) -> Tensor:
    """Moves dims to other places; the others keep their order.

    Args:
        x: A tensor.
        source: The dims to move, one number or a tuple.
        destination: Where they stand in the result, one number or a tuple.

    Returns:
        Tensor with reordered dims.
    """
    sources, places = axes_of(source, x.ndim, "moveaxis"), axes_of(destination, x.ndim, "moveaxis")
    order = [i for i in range(x.ndim) if i not in sources]
    for place, at in sorted(zip(places, sources, strict=True)):
        order.insert(place, at)
    return permute_dims(x, tuple(order))


def flip(x: Any, /, *, axis: Any = None) -> Tensor:
    """Reverses the order of elements along dims.

    Args:
        x: A tensor.
        axis: The dims, one number or a tuple; None: all.

    Returns:
        Tensor of the shape of x.
    """
    places = axes_of(axis, x.ndim, "flip")
    return F.flip(x, axis=list(places)) if places and x.ndim else x.clone()


def roll(x: Any, /, shift: Any, *, axis: Any = None) -> Tensor:
    """Shifts elements along dims; those that leave at the end come in at the start.

    Args:
        x: A tensor.
        shift: By how many places, one number or one per dim.
        axis: The dims, one number or a tuple; None: elements are shifted as if x were flat.

    Returns:
        Tensor of the shape of x.
    """
    if axis is None:
        return reshape(roll(reshape(x, (-1,)), shift, axis=0), x.shape)
    places = axes_of(axis, x.ndim, "roll")
    shifts = [int(s) for s in shift] if isinstance(shift, tuple | list) else [int(shift)] * len(places)
    if len(places) == 1 and len(shifts) > 1:
        places = places * len(shifts)
    if not numel(x):
        return x.clone()
    shifts = [s % x.shape[a] for s, a in zip(shifts, places, strict=True)]
    return F.roll(x, shifts=shifts, axis=list(places))


def tile(x: Any, repetitions: tuple[int, ...], /) -> Tensor:
    """Repeats a tensor along its dims.

    Args:
        x: A tensor.
        repetitions: How often along each dim; the last numbers belong to the last dims.

    Returns:
        Tensor of the repeated size.
    """
    rank = max(x.ndim, len(repetitions))
    times = (1,) * (rank - len(repetitions)) + tuple(int(r) for r in repetitions)
    x = reshape(x, (1,) * (rank - x.ndim) + x.shape)
    found = x
    for axis, n in enumerate(times):
        if n != 1:
            found = (
                concat([found] * n, axis=axis) if n else empty_of(x, (*found.shape[:axis], 0, *found.shape[axis + 1 :]))
            )
    return found if found is not x else x.clone()


def empty_of(x: Any, shape: Any) -> Tensor:
    """No elements, in a shape, with the dtype and place of x."""
    return zeros(tuple(shape), dtype=x.dtype, device=place_of(x))


def repeat(x: Any, repeats: Any, /, *, axis: int | None = None) -> Tensor:
    """Each element, or slice along a dim, so many times in a row.

    Args:
        x: A tensor.
        repeats: A number, or a tensor of integers, one for each slice.
        axis: The dim; None: of the flat tensor.

    Returns:
        The tensor.

    Raises:
        ValueError: repeats has negative numbers.
    """
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    (at,) = axes_of(axis, x.ndim, "repeat")
    counts = np.broadcast_to(np.asarray(repeats), (x.shape[at],))
    if (counts < 0).any():
        raise ValueError("repeat: repeats has negative numbers")
    index = np.repeat(np.arange(x.shape[at], dtype=np.int64), counts)
    return take(x, asarray(index, device=place_of(x)), axis=at)


def take(x: Any, indices: Any, /, *, axis: int | None = None) -> Tensor:
    """Selects slices along a dim by index, by op index_select.

    Args:
        x: A tensor.
        indices: Places along axis, integers; negative ones count from the end.
        axis: The dim; None if x has one alone.

    Returns:
        Tensor of the dtype of x.

    Raises:
        ValueError: axis is None and x has several dims.
        IndexError: There is nothing to take from.
    """
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"take: {named(x)} has {x.ndim} dims; expected an axis")
        axis = 0
    (at,) = axes_of(axis, x.ndim, "take")
    index = cast(require_tensor(indices, "take"), "int64")
    if not numel(index) or not numel(x):
        shape = (*x.shape[:at], *index.shape, *x.shape[at + 1 :])
        if int(np.prod(shape)):
            raise IndexError(f"take: {named(x)} has no elements to take")
        return empty_of(x, shape)
    index = _from_start(index, x.shape[at])
    found = F.index_select(x, reshape(index, (-1,)), dim=at)
    return found if index.ndim == 1 else reshape(found, (*x.shape[:at], *index.shape, *x.shape[at + 1 :]))


def _from_start(index: Any, size: int) -> Any:
    """Places counted from the start, also those that are negative."""
    return F.where(F.less_than(index, constant(0, "int64", index)), index + size, index)


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Tensor:
    """Takes elements along a dim by index: x[..., indices[..., i, ...], ...]; the other dims broadcast.

    Args:
        x: A tensor.
        indices: Places along axis, integers; negative ones count from the end.
        axis: The dim.

    Returns:
        Tensor of the dtype of x.
    """
    (at,) = axes_of(axis, x.ndim, "take_along_axis")
    index = cast(indices, "int64")
    shapes = [(*s[:at], 1, *s[at + 1 :]) for s in (x.shape, index.shape)]
    others = np.broadcast_shapes(*shapes)
    x = broadcast_to(x, (*others[:at], x.shape[at], *others[at + 1 :]))
    index = broadcast_to(index, (*others[:at], index.shape[at], *others[at + 1 :]))
    if not numel(index):
        return empty_of(x, index.shape)
    return F.take_along_axis(x, _from_start(index, x.shape[at]), Axis=at)
