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
    """Tensors one after the other along a dim."""
    return F.concat(list(x), axis=int(axis))


def stack(x: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Tensors of one shape along a new dim."""
    return F.stack(list(x), axis=int(axis))


def unstack(x: Tensor, axis: int = 0, num: int | None = None) -> list[Tensor]:
    """The slices along a dim, without it: the opposite of stack. num: how many there are, where that is not known."""
    return x.unbind(axis) if num is None else F.unbind(x, axis=int(axis), num_outputs=int(num))


def chunk(x: Tensor, chunks: int, axis: int = 0) -> list[Tensor]:
    """So many parts along a dim; where its size is no multiple, the last is smaller."""
    size = x.shape[axis]
    each = -(-size // chunks)
    sections = [min(each, size - at) for at in range(0, size, each)]
    return x.split(sections, axis)


def t(x: Tensor) -> Tensor:
    """The transpose of a matrix; a vector or a number as it is."""
    if x.ndim > 2:
        raise InvalidArgumentError(
            f"t: x has shape {list(x.shape)} of {x.ndim} dims; expected at most 2; for more, give the order of the "
            f"dims: x.transpose({list(range(x.ndim))[::-1]})"
        )
    return x if x.ndim < 2 else F.transpose2(x, axis=[1, 0])


def view(x: Tensor, *shape: Any) -> Tensor:
    """The elements in another shape, one dim of which may be -1: reshape, which needs no copy either."""
    return x.reshape(*shape)


def permute(x: Tensor, *dims: Any) -> Tensor:
    """The dims in another order: transpose with all of them."""
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
    """Dims moved to other places; the others keep their order."""
    rank = x.ndim
    sources = [d % rank for d in _ints(source)]
    order = [d for d in range(rank) if d not in sources]
    for place, d in sorted(zip((d % rank for d in _ints(destination)), sources, strict=True)):
        order.insert(place, d)
    return F.transpose2(x, axis=order)


def swapaxes(x: Tensor, axis0: int, axis1: int) -> Tensor:
    """Two dims in each other's place."""
    order = list(range(x.ndim))
    order[axis0], order[axis1] = order[axis1], order[axis0]
    return F.transpose2(x, axis=order)


def expand_as(x: Tensor, y: Tensor) -> Tensor:
    """x broadcast to the shape of y."""
    return x.expand(list(y.shape))


def broadcast_to(x: Tensor, shape: Sequence[int]) -> Tensor:
    """x broadcast to a shape; -1 keeps a dim."""
    return x.expand(list(shape))


def repeat_interleave(x: Tensor, repeats: int | Tensor, axis: int | None = None) -> Tensor:
    """Every slice of a dim so often in a row, or as often as a tensor says; without a dim, of the flat tensor."""
    x, axis = (x.reshape([-1]), 0) if axis is None else (x, axis)
    if isinstance(repeats, int):
        return F.repeat_interleave(x, Repeats=repeats, dim=int(axis))
    return F.repeat_interleave(x, repeats, dim=int(axis))


def flip(x: Tensor, axis: int | Sequence[int]) -> Tensor:
    """The slices of dims in reversed order."""
    return F.flip(x, axis=_ints(axis))


def roll(x: Tensor, shifts: int | Sequence[int], axis: int | Sequence[int] | None = None) -> Tensor:
    """Elements moved along dims; what leaves at the end comes in at the start. Without dims, of the flat tensor."""
    if axis is None:
        return F.roll(x.reshape([-1]), shifts=_ints(shifts), axis=[0]).reshape(list(x.shape))
    return F.roll(x, shifts=_ints(shifts), axis=_ints(axis))


def index_select(x: Tensor, index: Tensor, axis: int = 0) -> Tensor:
    """The slices at these places of a dim; index: integers [n]."""
    return F.index_select(x, index, dim=int(axis))


def masked_fill(x: Tensor, mask: Tensor, value: float | Tensor) -> Tensor:
    """x with a number where a bool mask is true; the mask is broadcast to x."""
    value = value if hasattr(value, "shape") else F.fill_any_like(x, value=float(value))
    return F.where(mask.expand(list(x.shape)), value.expand(list(x.shape)), x)


def take_along_axis(arr: Tensor, indices: Tensor, axis: int) -> Tensor:
    """Elements at these places of a dim: out[i, j] = arr[indices[i, j], j] for dim 0; PyTorch's gather."""
    return F.take_along_axis(arr, indices, Axis=int(axis))


def put_along_axis(arr: Tensor, indices: Tensor, values: Any, axis: int, reduce: str = "assign") -> Tensor:
    """arr with values written to these places of a dim; PyTorch's scatter. reduce: "assign", "add" or "mul"."""
    values = values if hasattr(values, "shape") else F.fill_constant(shape=[1], dtype=arr.dtype, value=float(values))
    return F.put_along_axis(arr, indices, values.expand(list(indices.shape)), Axis=int(axis), Reduce=reduce)


def scatter(x: Tensor, index: Tensor, updates: Tensor, overwrite: bool = True) -> Tensor:
    """x with rows replaced by those of updates, or, with overwrite=False, by their sums; index: integers [n]."""
    return F.scatter(x, index, updates, overwrite=overwrite)


def where(condition: Tensor, x: Any = None, y: Any = None) -> Any:
    """x where a condition is true, else y, each broadcast; numbers take the other's dtype. Alone, as nonzero."""
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
    """Where elements are not 0: [found, dims], or as_tuple one tensor [found] for each dim."""
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
    """Different elements in ascending order, and on demand where each is first, which one each is, how often it is."""
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
    """Rows with 1 at the place that an integer says: [...] to [..., num_classes], float32."""
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
