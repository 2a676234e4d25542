"""Shapes, dtypes and parts of one tensor, under the names of NumPy and Paddle 2: `x.reshape([2, -1])`, `x.split(3)`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oprack import functional as F
from oprack.errors import InvalidArgumentError
from oprack.layers import Variable
from oprack.types import dtype_enum, dtype_name

if TYPE_CHECKING:
    from oprack import Tensor


def astype(x: Tensor, dtype: object) -> Tensor:
    """Casts the elements to another dtype.

    Args:
        x: The tensor.
        dtype: The name of the dtype, such as "float32", or one of NumPy's.

    Returns:
        Tensor of the same shape.
    """
    name = dtype_name(dtype)
    return F.cast(x, in_dtype=int(dtype_enum(x.dtype)), out_dtype=int(dtype_enum(name)))


def cast(x: Tensor, dtype: object = None, **attrs: Any) -> Tensor:
    """Casts the elements to another dtype.

    Args:
        x: The tensor.
        dtype: The dtype; None: as the attributes say.
        attrs: Attributes of op cast, in place of dtype.

    Returns:
        Tensor of the same shape.
    """
    return F.cast(x, **attrs) if dtype is None else x.astype(dtype)


def clone(x: Tensor) -> Tensor:
    """A copy, through which gradients flow."""
    return F.assign(x)


def reshape(x: Tensor, *sizes: Any, shape: Any = None) -> Tensor:
    """Gives the elements another shape.

    Args:
        x: The tensor.
        sizes: The sizes, one by one or as one list; one may be -1, the size that is left over, and 0 keeps that of
            the same dim.
        shape: The sizes as a list, by keyword.

    Returns:
        Tensor of that shape.
    """
    return F.reshape2(x, shape=_ints(sizes, shape))


def transpose(x: Tensor, *axes: Any, perm: Any = None) -> Tensor:
    """Reorders the dims: as a list says, or, given two numbers, by swapping these two; without arguments reversed.

    Args:
        x: The tensor.
        axes: The order, as numbers or a list.
        perm: The order as a list, by keyword.

    Returns:
        Tensor with reordered dims.

    Raises:
        InvalidArgumentError: The call is `x.transpose(0, 1)` of two dims, which PyTorch swaps and NumPy leaves
            alone.
    """
    order = _ints(axes, perm)
    if len(axes) == 2 and not (x.ndim == 2 and order in ([1, 0], [-1, -2])):
        a, b = (i + x.ndim if i < 0 else i for i in order)
        if x.ndim == 2 and a != b:
            raise InvalidArgumentError(
                f"transpose({axes[0]}, {axes[1]}) of shape {list(x.shape)}: swap the dims with x.T, or keep "
                f"their order with x.transpose([{axes[0]}, {axes[1]}])"
            )
        if not (0 <= a < x.ndim and 0 <= b < x.ndim):
            raise InvalidArgumentError(
                f"transpose({axes[0]}, {axes[1]}) of shape {list(x.shape)}; expected two of its {x.ndim} "
                "dims to swap, or a list with all of them"
            )
        order = list(range(x.ndim))
        order[a], order[b] = order[b], order[a]
    return F.transpose2(x, axis=order or list(range(x.ndim))[::-1])


def squeeze(x: Tensor, *axes: Any, axis: Any = None) -> Tensor:
    """Removes dims of size 1.

    Args:
        x: The tensor.
        axes: The dims, one by one or as one list; none: all of size 1.
        axis: A dim or a list, by keyword.

    Returns:
        Tensor with fewer dims.
    """
    return F.squeeze2(x, axes=_ints(axes, axis))


def unsqueeze(x: Tensor, *axes: Any, axis: Any = None) -> Tensor:
    """Inserts dims of size 1.

    Args:
        x: The tensor.
        axes: Their places in the result, one by one or as one list.
        axis: A place or a list, by keyword.

    Returns:
        Tensor with more dims.
    """
    return F.unsqueeze2(x, axes=_ints(axes, axis))


def flatten(x: Tensor, start_axis: int = 0, stop_axis: int = -1) -> Tensor:
    """Merges neighbouring dims into one.

    Args:
        x: The tensor.
        start_axis: The first dim.
        stop_axis: The last dim.

    Returns:
        Tensor with fewer dims.
    """
    return F.flatten_contiguous_range(x, start_axis=start_axis, stop_axis=stop_axis)


def tile(x: Tensor, *times: Any, repeat_times: Any = None) -> Tensor:
    """Repeats the tensor along its dims.

    Args:
        x: The tensor.
        times: How often along each dim, one by one or as one list.
        repeat_times: How often, as a list, by keyword.

    Returns:
        Tensor of the repeated size.
    """
    return F.tile(x, repeat_times=_ints(times, repeat_times))


def expand(x: Tensor, *sizes: Any, shape: Any = None) -> Tensor:
    """Broadcasts to a shape.

    Args:
        x: The tensor.
        sizes: The sizes, one by one or as one list; -1 keeps a dim.
        shape: The sizes as a list, by keyword.

    Returns:
        Tensor of that shape.
    """
    return F.expand_v2(x, shape=_ints(sizes, shape))


def split(x: Tensor, num_or_sections: Any = None, axis: int = 0, **attrs: Any) -> list[Tensor]:
    """Cuts into parts along a dim.

    Args:
        x: The tensor.
        num_or_sections: The number of parts, which are equal, or a list of their sizes, one of which may be -1.
        axis: The dim.
        attrs: Attributes of op split.

    Returns:
        List of tensors.
    """
    if isinstance(num_or_sections, list | tuple):
        attrs["sections"] = [int(n) for n in num_or_sections]
    elif num_or_sections is not None:
        attrs["num"] = int(num_or_sections)
    return F.split(x, axis=axis, **attrs)


def unbind(x: Tensor, axis: int = 0, **attrs: Any) -> list[Tensor]:
    """Cuts into the slices along a dim, which they lose.

    Args:
        x: The tensor.
        axis: The dim.
        attrs: Attributes of op unbind.

    Returns:
        List of tensors.
    """
    return F.unbind(x, axis=axis, **attrs)


def gather(x: Tensor, index: Any, axis: int = 0, **attrs: Any) -> Tensor:
    """The slices at these places of a dim, as NumPy's take.

    Args:
        x: The tensor.
        index: Integers [N]. A number, with a tensor for `axis`, is PyTorch's `x.gather(dim, index)`, which is
            `x.take_along_axis(index, dim)`: one element at each place.
        axis: The dim.
        attrs: Attributes of the op.

    Returns:
        The tensor.
    """
    if isinstance(index, int) and not isinstance(axis, int):
        found: Tensor = x.take_along_axis(axis, index)
        return found
    return F.gather(x, index, axis=axis, **attrs)


def _ints(given: tuple[Any, ...], named: Any = None) -> list[Any]:
    """Numbers given one by one, as one list, or by keyword; Variables hold those of run time."""
    if named is not None:
        given = (*given, named)
    items = given[0] if len(given) == 1 and isinstance(given[0], list | tuple) else given
    return [i if isinstance(i, Variable) else int(i) for i in items]
