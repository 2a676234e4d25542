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
    """x repeated along dims of size 1 and in front, without gaps in memory."""
    shape = tuple(shape)
    if np.broadcast_shapes(x.shape, shape) != shape:
        raise ValueError(f"broadcast_to: {named(x)} does not broadcast to {list(shape)}")
    return x.clone() if x.shape == shape else F.expand_v2(x, shape=list(shape))  # type: ignore[no-any-return]


def broadcast_arrays(*arrays: Any) -> list[Tensor]:
    """All in the shape to which they broadcast."""
    shape = np.broadcast_shapes(*(a.shape for a in arrays))
    return [broadcast_to(a, shape) for a in arrays]


def concat(arrays: Any, /, *, axis: int | None = 0) -> Tensor:
    """One after the other along a dim, in their common dtype; for axis=None, of the flat tensors."""
    dtype = result_type(*arrays)
    given = [cast(a, dtype) for a in arrays]
    if axis is None:
        given, axis = [reshape(a, (-1,)) for a in given], 0
    (axis,) = axes_of(axis, given[0].ndim, "concat")
    return F.concat(given, axis=axis)  # type: ignore[no-any-return]


def stack(arrays: Any, /, *, axis: int = 0) -> Tensor:
    """Along a new dim, in their common dtype."""
    dtype = result_type(*arrays)
    return F.stack([cast(a, dtype) for a in arrays], axis=axis)  # type: ignore[no-any-return]


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices along a dim, without it."""
    (at,) = axes_of(axis, x.ndim, "unstack")
    return tuple(F.unbind(x, axis=at)) if x.shape[at] else ()


def expand_dims(x: Any, /, axis: Any) -> Tensor:
    """With new dims of size 1 at these places of the result."""
    rank = x.ndim + (len(axis) if isinstance(axis, tuple) else 1)
    places = axes_of(axis, rank, "expand_dims")
    if len(set(places)) != len(places):
        raise ValueError(f"expand_dims: axis {axis} names a place twice")
    return reshape(x, _with_ones(x.shape, places))


def _with_ones(shape: tuple[int, ...], places: tuple[int, ...]) -> tuple[int, ...]:
    sizes = iter(shape)
    return tuple(1 if i in places else next(sizes) for i in range(len(shape) + len(places)))


def squeeze(x: Any, /, axis: Any) -> Tensor:
    """Without these dims of size 1."""
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
    return x.reshape(sizes) if tuple(sizes) != x.shape else x.clone()  # type: ignore[no-any-return]


def permute_dims(x: Any, /, axes: tuple[int, ...]) -> Tensor:
    """Dims in another order."""
    order = axes_of(axes, x.ndim, "permute_dims")
    return F.transpose2(x, axis=list(order)) if x.ndim else x.clone()  # type: ignore[no-any-return]


def moveaxis(x: Any, source: Any, destination: Any, /) -> Tensor:
    """Dims moved to other places; the others keep their order."""
    sources, places = axes_of(source, x.ndim, "moveaxis"), axes_of(destination, x.ndim, "moveaxis")
    order = [i for i in range(x.ndim) if i not in sources]
    for place, at in sorted(zip(places, sources, strict=True)):
        order.insert(place, at)
    return permute_dims(x, tuple(order))


def flip(x: Any, /, *, axis: Any = None) -> Tensor:
    """Elements in reversed order along dims, by default all."""
    places = axes_of(axis, x.ndim, "flip")
    return F.flip(x, axis=list(places)) if places and x.ndim else x.clone()  # type: ignore[no-any-return]


def roll(x: Any, /, shift: Any, *, axis: Any = None) -> Tensor:
    """Elements moved along dims; what leaves at the end comes in at the start. None: of the flat tensor."""
    if axis is None:
        return reshape(roll(reshape(x, (-1,)), shift, axis=0), x.shape)
    places = axes_of(axis, x.ndim, "roll")
    shifts = [int(s) for s in shift] if isinstance(shift, tuple | list) else [int(shift)] * len(places)
    if len(places) == 1 and len(shifts) > 1:
        places = places * len(shifts)
    if not numel(x):
        return x.clone()  # type: ignore[no-any-return]
    shifts = [s % x.shape[a] for s, a in zip(shifts, places, strict=True)]
    return F.roll(x, shifts=shifts, axis=list(places))  # type: ignore[no-any-return]


def tile(x: Any, repetitions: tuple[int, ...], /) -> Tensor:
    """Repeated so often along each dim; the last numbers belong to the last dims."""
    rank = max(x.ndim, len(repetitions))
    times = (1,) * (rank - len(repetitions)) + tuple(int(r) for r in repetitions)
    x = reshape(x, (1,) * (rank - x.ndim) + x.shape)
    found = x
    for axis, n in enumerate(times):
        if n != 1:
            found = (
                concat([found] * n, axis=axis) if n else empty_of(x, (*found.shape[:axis], 0, *found.shape[axis + 1 :]))
            )
    return found if found is not x else x.clone()  # type: ignore[no-any-return]


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
    """The slices at these places of a dim, by op index_select."""
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
    """x[..., indices[..., i, ...], ...] along a dim; the other dims broadcast."""
    (at,) = axes_of(axis, x.ndim, "take_along_axis")
    index = cast(indices, "int64")
    shapes = [(*s[:at], 1, *s[at + 1 :]) for s in (x.shape, index.shape)]
    others = np.broadcast_shapes(*shapes)
    x = broadcast_to(x, (*others[:at], x.shape[at], *others[at + 1 :]))
    index = broadcast_to(index, (*others[:at], index.shape[at], *others[at + 1 :]))
    if not numel(index):
        return empty_of(x, index.shape)
    return F.take_along_axis(x, _from_start(index, x.shape[at]), Axis=at)  # type: ignore[no-any-return]
