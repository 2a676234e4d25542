"""Shape arithmetic that definitions (dims may be -1) and kernels share; plain Python."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from oprack.errors import InvalidArgumentError
from oprack.kernel import Array
from oprack.op import normal_axis

if TYPE_CHECKING:
    from oprack.op import InferShapeContext


def product(dims: Sequence[int]) -> int:
    """Number of elements; -1 when a dim is not known."""
    if any(d < 0 for d in dims):
        return -1
    n = 1
    for d in dims:
        n *= d
    return n


def range_length(start: float, end: float, step: float) -> int:
    """How many numbers start, start + step ... there are before end; exact for integers of any size.

    Args:
        start: The first number, finite.
        end: The end, which is not reached, finite.
        step: The difference between two numbers, not 0.
    """
    if all(isinstance(v, int) for v in (start, end, step)):
        return max(0, -int((start - end) // step))
    return max(0, math.ceil((end - start) / step))


def count_is_open(ctx: InferShapeContext, tensor: str) -> bool:
    """Whether not even the length of a tensor of integers is known, for rules that make no guesses.

    Args:
        ctx: The context of the shape rule that asks.
        tensor: The slot of the tensor, which may be absent.
    """
    if ctx.guesses or not tensor or not ctx.has_input(tensor):
        return False
    return ctx.value(tensor) is None and product(ctx.dim(tensor)) < 0


def given_ints(
    ctx: InferShapeContext,
    attr: str,
    tensor: str = "",
    tensors: str = "",
    likely: int = 1,
    open_marks: Sequence[int] = (-1,),
) -> list[int | None]:
    """Integers that an op takes as a tensor, as a list of one-element tensors, or else as an attribute.

    Args:
        ctx: The context of the shape rule that asks.
        attr: The attribute.
        tensor: The slot of the tensor, if there is one.
        tensors: The slot of the list of tensors, if there is one.
        likely: How many integers there are where the length of the tensor is not known.
        open_marks: What Paddle writes into the attribute for elements that only a tensor has.

    Returns:
        The integers. At build time elements of a tensor are what the attribute says of them, where it is as long and
        says none of `open_marks`; the others are None (not known).

    Raises:
        InvalidArgumentError: A tensor of the list has another number of elements than one.
    """
    value = ctx.attr(attr)
    if tensor and ctx.has_input(tensor):
        array = ctx.value(tensor)
        if array is not None:
            return [int(v) for v in array.reshape(-1).tolist()]
        count = product(ctx.dim(tensor))
        return _hinted(ctx, value, likely if count < 0 else max(count, 1), open_marks)
    if tensors and ctx.has_input(tensors):
        scalars = [ctx.scalar(tensors, i) for i in range(ctx.input_count(tensors))]
        if any(s is None for s in scalars):
            return _hinted(ctx, value, len(scalars), open_marks)
        return [int(s) for s in scalars]
    values = value if isinstance(value, list | tuple) else [value]
    return [None if isinstance(v, str) else v for v in values]  # a variable's name, at build time


def _hinted(ctx: InferShapeContext, attr: Sequence[int], count: int, open_marks: Sequence[int]) -> list[int | None]:
    if ctx.guesses and isinstance(attr, list | tuple) and len(attr) == count:
        return [None if v in open_marks else v for v in attr]
    return [None] * count


def to_ints(tensor: Array | None, tensors: Sequence[Any] | None, attr: Sequence[int]) -> list[int]:
    """The same for kernels, from arrays."""
    if tensor is not None:
        return [int(v) for v in tensor.reshape(-1).tolist()]
    if tensors:
        return [int(t.reshape(-1)[0]) for t in tensors]
    return list(attr)


def reshape_dims(op: str, dims: Sequence[int], shape: Sequence[int | None]) -> list[int]:
    """Dims after a reshape: 0 copies the dim of that place, one -1 takes what is left, None is not known yet."""
    out = [_reshaped_dim(op, dims, shape, i) for i in range(len(shape))]
    unknown = [i for i, s in enumerate(shape) if s == -1]
    if len(unknown) > 1:
        raise InvalidArgumentError(f"op {op}: shape {list(shape)} has more than one -1; only one dim can be inferred")
    if any(s is None for s in shape):
        return out
    total = product(dims)
    rest = product([d for i, d in enumerate(out) if i not in unknown])
    if total < 0 or rest < 0:
        return out
    if unknown:
        out[unknown[0]] = total // rest if rest else 0
    if product(out) != total:
        raise InvalidArgumentError(
            f"op {op}: an input of shape {list(dims)} ({total} elements) can't take shape {list(shape)}; "
            f"expected a shape of {total} elements"
        )
    return out


def _reshaped_dim(op: str, dims: Sequence[int], shape: Sequence[int | None], i: int) -> int:
    """Dim i of the result by itself, -1 where it follows from the others or is not known."""
    size = shape[i]
    if size is None:
        return -1
    if size < -1:
        raise InvalidArgumentError(f"op {op}: shape {list(shape)} has {size}; expected -1, 0 or a positive size")
    if size:
        return size
    if i < len(dims):
        return dims[i]
    if product(dims) == 0:  # nothing to copy from, and nothing to hold
        return 0
    raise InvalidArgumentError(
        f"op {op}: shape {list(shape)} copies dim {i} (a 0 means copy) of an input of rank {len(dims)}; "
        f"expected zeros at places below {len(dims)} only"
    )


def squeeze_axes(op: str, dims: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    """Places that squeeze removes: those of `axes` that have size 1, or all of size 1 when `axes` is empty.

    A size of `axes` that is not known counts as 1, as in Paddle: who names an axis expects it to go.
    """
    if not axes:
        return tuple(i for i, d in enumerate(dims) if d == 1)
    return tuple(i for i in sorted({normal_axis(op, a, len(dims), "axes") for a in axes}) if dims[i] in (1, -1))


def unsqueeze_dims(op: str, dims: Sequence[int], axes: Sequence[int]) -> list[int]:
    """Dims after inserting a 1 for each of `axes`, one after the other, each counted in the shape made so far."""
    out = list(dims)
    for a in axes:
        out.insert(normal_axis(op, a, len(out) + 1, "axes"), 1)
    return out


def slice_range(start: int, end: int, dim: int) -> tuple[int, int]:
    """[start, end) with step 1 in a dim, negatives counted from its end, clamped to what exists."""
    start = min(max(start + dim if start < 0 else start, 0), dim)
    end = min(max(end + dim if end < 0 else end, 0), dim)
    return start, max(start, end)


def strided_slice_of(start: int, end: int, step: int, dim: int, decrease: bool = False) -> slice:
    """Python slice of one axis of strided_slice; an end of -1 with a negative step means "past the first element"."""
    if decrease and start == -1 and end == 0:  # x[-1], whose end can't be told from 0
        return slice(dim - 1, dim, 1)
    start = max(start + dim, 0) if start < 0 else start
    if step > 0:
        return slice(min(start, dim), max(end + dim, 0) if end < 0 else end, step)
    stop = None if end == -1 else (max(end + dim, 0) if end < 0 else end)
    return slice(min(start, dim - 1), stop, step) if dim else slice(0, 0, 1)


def length_of(s: slice, dim: int) -> int:
    """Number of elements that a slice picks from a dim."""
    return len(range(*s.indices(dim)))


def broadcast_dims(op: str, dims: Sequence[int], shape: Sequence[int | None]) -> list[int]:
    """Dims after an expand: -1 keeps the dim, None is not known yet; dims are aligned at the end."""
    if len(shape) < len(dims):
        raise InvalidArgumentError(
            f"op {op}: shape {list(shape)} has rank {len(shape)} but the input {list(dims)} has rank {len(dims)}; "
            "expected at least the input's rank"
        )
    lead = len(shape) - len(dims)
    out = []
    for i, s in enumerate(shape):
        d = dims[i - lead] if i >= lead else 1
        if s is None:
            out.append(-1)
        elif s < -1:
            raise InvalidArgumentError(f"op {op}: shape {list(shape)} has {s}; expected -1, 0 or a positive size")
        elif s == -1:
            if i < lead:
                raise InvalidArgumentError(f"op {op}: shape {list(shape)} keeps dim {i} (-1), which the input lacks")
            out.append(d)
        elif d in (1, -1, s):
            out.append(s)
        else:
            raise InvalidArgumentError(
                f"op {op}: dim {i} of shape {list(shape)} is {s} but the input has {d}; expected {d}, or an input of 1"
            )
    return out


def cut_shapes(dims: Sequence[int], ranks: Sequence[int]) -> list[list[int]]:
    """Shapes that were written one after the other: [2, 3, 4] with ranks [2, 1] -> [[2, 3], [4]]."""
    shapes, at = [], 0
    for rank in ranks:
        shapes.append(list(dims[at : at + rank]))
        at += rank
    return shapes


def sections_of(op: str, dim: int, num: int, sections: Sequence[int]) -> list[int]:
    """Sizes of the parts of a split of a dim, all known."""
    if num > 0:
        if dim % num:
            raise InvalidArgumentError(
                f"op {op}: a dim of {dim} can't be cut into {num} equal parts; give the size of each part, such as "
                f"{[-(-dim // num)] * (num - 1) + [-1]}"
            )
        return [dim // num] * num
    out = list(sections)
    if out.count(-1) == 1:
        out[out.index(-1)] = dim - sum(s for s in out if s != -1)
    if sum(out) != dim or any(s < 0 for s in out):
        raise InvalidArgumentError(
            f"op {op}: sections {list(sections)} don't cut a dim of {dim}; "
            "expected sizes that add up to it, one may be -1"
        )
    return out
