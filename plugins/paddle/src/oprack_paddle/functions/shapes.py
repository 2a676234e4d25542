"""Shapes: what joins, splits, turns and fills tensors."""

from __future__ import annotations

import builtins
import itertools
from typing import Any

import numpy as np
import oprack
from oprack import functional as F
from oprack.errors import InvalidArgumentError

from oprack_paddle.functions._tools import axis_in, is_tensor, plain, tensor
from oprack_paddle.members.in_place import take_over
from oprack_paddle.state import in_dynamic_mode

Tensor = Any


def _at_least(inputs: Any, n: int) -> Any:
    found = []
    for x in inputs:
        x = tensor(x)
        if x.ndim < n:
            shape = {
                (0, 1): [1], (0, 2): [1, 1], (1, 2): [1, -1], (0, 3): [1, 1, 1], (1, 3): [1, -1, 1],
            }.get((x.ndim, n)) or [*x.shape, 1]  # fmt: skip
            x = x.reshape(shape)
        found.append(x)
    return found[0] if len(found) == 1 else found


def atleast_1d(*inputs: Tensor, name: Any = None) -> Any:
    """Tensors of one dim at least."""
    return _at_least(inputs, 1)


def atleast_2d(*inputs: Tensor, name: Any = None) -> Any:
    """Tensors of two dims at least."""
    return _at_least(inputs, 2)


def atleast_3d(*inputs: Tensor, name: Any = None) -> Any:
    """Tensors of three dims at least."""
    return _at_least(inputs, 3)


def broadcast_shape(x_shape: Any, y_shape: Any) -> list[int]:
    """The shape to which two shapes broadcast."""
    return list(np.broadcast_shapes(tuple(x_shape), tuple(y_shape)))


def broadcast_tensors(input: Any, name: Any = None) -> list[Tensor]:
    """Tensors, broadcast to one shape."""
    return list(F.broadcast_tensors(list(input)))


def as_strided(x: Tensor, shape: Any, stride: Any, offset: int = 0, name: Any = None) -> Tensor:
    """Elements of the memory by their place: offset + the sum of index * stride."""
    index = np.full(tuple(shape), offset, np.int64)
    for axis, (size, step) in enumerate(zip(shape, stride, strict=True)):
        index += (np.arange(size) * step).reshape([-1 if i == axis else 1 for i in range(len(shape))])
    flat = F.gather(x.reshape([-1]), oprack.to_tensor(index.ravel()))
    return flat.reshape(list(shape))


def combinations(x: Tensor, r: int = 2, with_replacement: bool = False, name: Any = None) -> Tensor:
    """All choices of r elements, one a row."""
    pick = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = np.array(list(pick(range(x.shape[0]), r)), np.int64).reshape(-1, r)
    if rows.size == 0:
        return oprack.empty([0, r] if r else [0], dtype=x.dtype)
    return F.gather(x, oprack.to_tensor(rows.ravel())).reshape(list(rows.shape))


def cartesian_prod(x: Any, name: Any = None) -> Tensor:
    """All rows with one element of each tensor."""
    if len(x) == 1:
        return x[0]
    return oprack.stack([m.reshape([-1]) for m in oprack.meshgrid(*x)], axis=-1)


def diagflat(x: Tensor, offset: int = 0, name: Any = None) -> Tensor:
    """A matrix with the elements on a diagonal."""
    return F.diag_v2(x.reshape([-1]), offset=offset, padding_value=0.0)


def diag(x: Tensor, offset: int = 0, padding_value: float = 0, name: Any = None) -> Tensor:
    """A matrix with a vector on a diagonal, or the diagonal of a matrix."""
    return F.diag_v2(x, offset=offset, padding_value=float(padding_value))


def _placed(x: Tensor, at: Any, values: Tensor) -> Tensor:
    """x with values at an index."""
    found = oprack.clone(x)
    found[at] = values
    return found


def diagonal_scatter(x: Tensor, y: Tensor, offset: int = 0, axis1: int = 0, axis2: int = 1, name: Any = None) -> Tensor:
    """x with y on a diagonal."""
    a1, a2 = axis1 % x.ndim, axis2 % x.ndim
    return F.fill_diagonal_tensor(x, y, offset=offset, dim1=a1, dim2=a2)


def fill_diagonal_tensor(
    x: Tensor, y: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1, name: Any = None
) -> Tensor:
    """x with y on a diagonal."""
    return F.fill_diagonal_tensor(x, y, offset=offset, dim1=dim1 % x.ndim, dim2=dim2 % x.ndim)


def select_scatter(x: Tensor, values: Tensor, axis: int, index: int, name: Any = None) -> Tensor:
    """x with values at one place of an axis."""
    axis = axis_in(axis, x.ndim, "select_scatter")
    return _placed(x, (*[builtins.slice(None)] * axis, index), values)


def slice_scatter(
    x: Tensor, value: Tensor, axes: Any, starts: Any, ends: Any, strides: Any, name: Any = None
) -> Tensor:
    """x with values in a part of it."""
    at = [builtins.slice(None)] * x.ndim
    for axis, start, end, step in zip(axes, starts, ends, strides, strict=True):
        at[axis] = builtins.slice(start, end, step)
    return _placed(x, tuple(at), value)


def scatter_nd(index: Tensor, updates: Tensor, shape: Any, name: Any = None) -> Tensor:
    """Zeros of a shape, to which updates are added at an index."""
    return F.scatter_nd_add(oprack.zeros(plain(shape), updates.dtype), index, updates)


def rot90(x: Tensor, k: int = 1, axes: Any = (0, 1), name: Any = None) -> Tensor:
    """Turned by k times 90 degrees in the plane of two dims, from the first towards the second."""
    if len(axes) != 2 or x.ndim < 2 or axes[0] % x.ndim == axes[1] % x.ndim:
        raise InvalidArgumentError(f"rot90: axes is {list(axes)}; expected two different dims of {list(x.shape)}")
    order = list(range(x.ndim))
    a, b = axes[0] % x.ndim, axes[1] % x.ndim
    order[a], order[b] = order[b], order[a]
    turns = k % 4
    if turns == 0:
        return oprack.clone(x)
    if turns == 2:
        return F.flip(x, axis=[a, b])
    return F.flip(x, axis=[b]).transpose(order) if turns == 1 else F.flip(x.transpose(order), axis=[b])


def take(x: Tensor, index: Tensor, mode: str = "raise", name: Any = None) -> Tensor:
    """Elements by their places in the flattened tensor."""
    size = x.size
    if mode not in ("raise", "wrap", "clip"):
        raise InvalidArgumentError(f"take: mode is {mode!r}; expected 'raise', 'wrap' or 'clip'")
    flat = index.reshape([-1])
    if mode == "clip":
        flat = oprack.clip(flat, 0, size - 1)
    elif mode == "wrap":
        flat = oprack.mod(flat, oprack.full_like(flat, size))
    else:
        host = np.asarray(flat)
        if host.size and (host.min() < -size or host.max() >= size):
            raise InvalidArgumentError(f"take: an index is outside of a tensor of {size} elements")
        flat = oprack.where(flat < 0, flat + size, flat)
    return F.gather(x.reshape([-1]), flat).reshape(list(index.shape))


def unflatten(x: Tensor, axis: int, shape: Any, name: Any = None) -> Tensor:
    """One dim, split into several."""
    axis = axis_in(axis, x.ndim, "unflatten")
    return x.reshape([*x.shape[:axis], *plain(shape), *x.shape[axis + 1 :]])


def vander(x: Tensor, n: int | None = None, increasing: bool = False, name: Any = None) -> Tensor:
    """The powers of each element, one row for one element; decreasing powers, unless asked otherwise."""
    n = x.shape[0] if n is None else n
    powers = [i if increasing else n - 1 - i for i in range(n)]
    if not powers:
        return oprack.empty([x.shape[0], 0], dtype=x.dtype)
    ones = oprack.ones_like(x)
    columns = [ones]
    for _ in range(n - 1):
        columns.append(columns[-1] * x)
    return oprack.stack([columns[p] for p in powers], axis=-1)


def view_as(x: Tensor, other: Tensor, name: Any = None) -> Tensor:
    """In the shape of another tensor."""
    return x.reshape(list(other.shape))


def tensor_split(x: Tensor, num_or_indices: Any, axis: int = 0, name: Any = None) -> list[Tensor]:
    """Parts of nearly equal sizes, or between these places."""
    axis = axis_in(axis, x.ndim, "tensor_split")
    size = x.shape[axis]
    if isinstance(num_or_indices, int):
        each, more = divmod(size, num_or_indices)
        sizes = [each + 1] * more + [each] * (num_or_indices - more)
        ends = list(itertools.accumulate(sizes))
        starts = [0, *ends[:-1]]
    else:
        starts, ends = [0, *num_or_indices], [*num_or_indices, size]
    head = [builtins.slice(None)] * axis
    return [x[(*head, builtins.slice(a, b))] for a, b in zip(starts, ends, strict=True)]


def vsplit(x: Tensor, num_or_sections: Any, name: Any = None) -> list[Tensor]:
    """Parts of rows."""
    if x.ndim < 2:
        raise InvalidArgumentError(f"vsplit: x has {x.ndim} dims; expected 2 at least")
    return list(oprack.split(x, num_or_sections, axis=0)) if x.shape[0] else tensor_split(x, num_or_sections, axis=0)


def hsplit(x: Tensor, num_or_indices: Any, name: Any = None) -> list[Tensor]:
    """Parts of columns; of a vector, parts of it."""
    return tensor_split(x, num_or_indices, axis=1 if x.ndim > 1 else 0)


def dsplit(x: Tensor, num_or_indices: Any, name: Any = None) -> list[Tensor]:
    """Parts along the third dim."""
    return tensor_split(x, num_or_indices, axis=2)


def hstack(x: Any, name: Any = None) -> Tensor:
    """Joined along the columns; vectors one after the other."""
    x = [atleast_1d(t) for t in x]
    return oprack.concat(x, axis=0 if x[0].ndim == 1 else 1)


def vstack(x: Any, name: Any = None) -> Tensor:
    """Joined along the rows."""
    return oprack.concat([atleast_2d(t) for t in x], axis=0)


row_stack = vstack


def dstack(x: Any, name: Any = None) -> Tensor:
    """Joined along the third dim."""
    return oprack.concat([atleast_3d(t) for t in x], axis=2)


def column_stack(x: Any, name: Any = None) -> Tensor:
    """Vectors as columns, joined with the columns of matrices."""
    return oprack.concat([t.reshape([-1, 1]) if t.ndim < 2 else t for t in x], axis=1)


def index_fill(x: Tensor, index: Tensor, axis: int, value: Any, name: Any = None) -> Tensor:
    """x with one number at these places of an axis."""
    axis = axis_in(axis, x.ndim, "index_fill")
    mask = np.zeros(x.shape[axis], bool)
    mask[np.asarray(index)] = True
    mask = mask.reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    filled = value.astype(x.dtype) if is_tensor(value) else oprack.full([1], value, dtype=x.dtype)
    return oprack.where(oprack.to_tensor(np.broadcast_to(mask, x.shape).copy()), filled.broadcast_to(x.shape), x)


def masked_fill(x: Tensor, mask: Tensor, value: Any, name: Any = None) -> Tensor:
    """x with one number where the mask is true."""
    filled = value.astype(x.dtype) if is_tensor(value) else oprack.full([], value, dtype=x.dtype)
    shape = list(np.broadcast_shapes(tuple(x.shape), tuple(mask.shape)))
    same = list(x.shape) == shape
    return oprack.where(mask.broadcast_to(shape), filled.broadcast_to(shape), x if same else x.broadcast_to(shape))


def put_along_axis(
    arr: Tensor,
    indices: Tensor,
    values: Any,
    axis: int,
    reduce: str = "assign",
    include_self: bool = True,
    broadcast: bool = True,
    name: Any = None,
) -> Tensor:
    """arr with values at the places that indices name along an axis: in place of its own, added or multiplied."""
    axis = axis_in(axis, arr.ndim, "put_along_axis")
    values = values.astype(arr.dtype) if is_tensor(values) else tensor(values, arr)
    if broadcast:
        shape = list(
            np.broadcast_shapes(tuple(indices.shape), tuple(1 if i == axis else s for i, s in enumerate(arr.shape)))
        )
        indices = indices.broadcast_to(shape)
        values = values.broadcast_to(list(indices.shape))
    elif values.ndim == 0:
        values = values.broadcast_to(list(indices.shape))
    else:
        values = values[tuple(builtins.slice(0, s) for s in indices.shape)]
    reduce = {"multiply": "mul", "sum": "add"}.get(reduce, reduce)
    if indices.size == 0:
        return oprack.clone(arr)
    return F.put_along_axis(arr, indices.astype("int64"), values, Axis=axis, Reduce=reduce, Include_self=include_self)


def assign(x: Any, output: Any = None) -> Tensor:
    """A copy; in place of another tensor, where one is given."""
    found = oprack.clone(x) if is_tensor(x) else _constant(x)
    return found if output is None else take_over("assign", output, found)


def _constant(x: Any) -> Tensor:
    array = np.atleast_1d(np.asarray(plain(x) if isinstance(x, list | tuple) else x))
    if array.dtype == np.float64 and not isinstance(x, np.ndarray):
        array = array.astype("float32")
    found = oprack.to_tensor(array)
    return found if in_dynamic_mode() else F.assign(found)


def numel(x: Tensor, name: Any = None) -> Tensor:
    """The number of elements, as a tensor."""
    return F.size(x) if not isinstance(x, oprack.Tensor) else oprack.to_tensor(np.asarray(x.size, "int64"))


def shape(input: Tensor) -> Tensor:
    """The dims, as a tensor of int32."""
    return F.shape(input)


def tolist(x: Tensor) -> Any:
    """The elements as nested lists."""
    return x.tolist()


def crop(x: Tensor, shape: Any = None, offsets: Any = None, name: Any = None) -> Tensor:
    """A box of a shape that begins at offsets; -1 takes all up to the end."""
    offsets = [0] * x.ndim if offsets is None else plain(offsets)
    sizes = list(x.shape) if shape is None else plain(shape)
    ends = [n if s == -1 else o + s for n, o, s in zip(x.shape, offsets, sizes, strict=True)]
    return x[tuple(builtins.slice(a, b) for a, b in zip(offsets, ends, strict=True))]


def unfold(x: Tensor, axis: int, size: int, step: int, name: Any = None) -> Tensor:
    """Windows of a size along an axis, as a last dim."""
    axis = axis_in(axis, x.ndim, "unfold")
    starts = np.arange(0, x.shape[axis] - size + 1, step)
    index = (starts[:, None] + np.arange(size)).ravel()
    picked = F.index_select(x, oprack.to_tensor(index), dim=axis)
    order = [i if i < axis else i + 1 for i in range(x.ndim) if i != axis]
    split = picked.reshape([*x.shape[:axis], len(starts), size, *x.shape[axis + 1 :]])
    return split.transpose([*order[:axis], axis, *order[axis:], axis + 1])


def moveaxis(x: Tensor, source: Any, destination: Any, name: Any = None) -> Tensor:
    """Dims moved to other places."""
    sources = [source] if isinstance(source, int) else list(source)
    targets = [destination] if isinstance(destination, int) else list(destination)
    sources, targets = [s % x.ndim for s in sources], [t % x.ndim for t in targets]
    order = [i for i in range(x.ndim) if i not in sources]
    for target, moved in sorted(zip(targets, sources, strict=True)):
        order.insert(target, moved)
    return x.transpose(order)


def shard_index(input: Tensor, index_num: int, nshards: int, shard_id: int, ignore_value: int = -1) -> Tensor:
    """Places in one of several shards of a table; ignore_value for those in others."""
    return F.shard_index(input, index_num=index_num, nshards=nshards, shard_id=shard_id, ignore_value=ignore_value)


def reverse(x: Tensor, axis: Any, name: Any = None) -> Tensor:
    """Turned round along dims."""
    return F.flip(x, axis=[axis] if isinstance(axis, int) else list(axis))


def fill_diagonal_(x: Tensor, value: Any, offset: int = 0, wrap: bool = False, name: Any = None) -> Tensor:
    """Writes a number on a diagonal, in the tensor's memory."""
    return take_over("fill_diagonal_", x, F.fill_diagonal(x, value=float(value), offset=offset, wrap=wrap))


def take_along_axis(arr: Tensor, indices: Tensor, axis: int, broadcast: bool = True) -> Tensor:
    """The elements that indices name along an axis."""
    axis = axis_in(axis, arr.ndim, "take_along_axis")
    if broadcast:
        one = [1 if i == axis else s for i, s in enumerate(arr.shape)]
        wide = [1 if i == axis else s for i, s in enumerate(indices.shape)]
        rest = np.broadcast_shapes(tuple(one), tuple(wide))
        indices = indices.broadcast_to([indices.shape[i] if i == axis else n for i, n in enumerate(rest)])
        arr = arr.broadcast_to([arr.shape[i] if i == axis else n for i, n in enumerate(rest)])
    return oprack.take_along_axis(arr, indices.astype("int64"), axis)


def squeeze(x: Tensor, axis: Any = None, name: Any = None) -> Tensor:
    """Without dims of size 1."""
    if x.ndim == 0:
        return oprack.clone(x)
    axis = plain(axis)
    return F.squeeze2(x, axes=[] if axis is None else [axis] if isinstance(axis, int) else list(axis))


def where(condition: Tensor, x: Any = None, y: Any = None, name: Any = None) -> Any:
    """Elements of x where a condition holds, of y elsewhere; without both, where it holds."""
    if x is None and y is None:
        return nonzero(condition, as_tuple=True)
    if x is None or y is None:
        raise ValueError("where: one of x and y is None; expected both, or none of them")
    if not is_tensor(x):
        x = tensor(x, y if is_tensor(y) else None)
    if not is_tensor(y):
        y = tensor(y, x)
    if x.dtype != y.dtype:
        wide = str(np.promote_types(x.dtype, y.dtype))
        x, y = x.astype(wide), y.astype(wide)
    shape = list(np.broadcast_shapes(tuple(condition.shape), tuple(x.shape), tuple(y.shape)))
    return F.where(*[t if list(t.shape) == shape else t.broadcast_to(shape) for t in (condition, x, y)])


def nonzero(x: Tensor, as_tuple: bool = False) -> Any:
    """Where elements are not zero: a row for each, or a column of places for each dim."""
    found = F.where_index(x)
    return tuple(found[:, i : i + 1] for i in range(x.ndim)) if as_tuple else found
