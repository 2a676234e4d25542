"""Functions that Paddle 3 added to paddle and paddle.linalg, by its names and parameters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import oprack
from oprack import functional as F

from oprack_paddle.functions._tools import dtype_name, floating

Tensor = Any
__all__ = ["e", "inf", "nan", "newaxis", "pi"]

e, pi, inf, nan, newaxis = math.e, math.pi, math.inf, math.nan, None


def argwhere(input: Tensor, name: Any = None) -> Tensor:
    """The places of elements that are not zero, a row each."""
    return oprack.nonzero(input)


def isin(x: Tensor, test_x: Tensor, assume_unique: bool = False, invert: bool = False, name: Any = None) -> Tensor:
    """Which elements are among others."""
    found = np.isin(np.asarray(x), np.asarray(test_x), invert=invert)
    return oprack.to_tensor(found)


def isneginf(x: Tensor, name: Any = None) -> Tensor:
    """Which elements are minus infinity."""
    return oprack.logical_and(oprack.isinf(x), x < 0)


def isposinf(x: Tensor, name: Any = None) -> Tensor:
    """Which elements are infinity."""
    return oprack.logical_and(oprack.isinf(x), x > 0)


def isreal(x: Tensor, name: Any = None) -> Tensor:
    """Which elements have no imaginary part."""
    if not str(x.dtype).startswith("complex"):
        return oprack.ones(list(x.shape), dtype="bool")
    return oprack.imag(x) == 0.0


def signbit(x: Tensor, name: Any = None) -> Tensor:
    """Which elements have a minus sign, zeros and NaN among them."""
    return oprack.to_tensor(np.signbit(np.asarray(x)))


def negative(x: Tensor, name: Any = None) -> Tensor:
    """The elements with the other sign."""
    return -x


def positive(x: Tensor) -> Tensor:
    """The tensor itself."""
    return x


def ravel(input: Tensor) -> Tensor:
    """All elements in one dim."""
    return oprack.reshape(input, [-1])


def msort(input: Tensor) -> Tensor:
    """Sorted along the first dim."""
    return oprack.sort(input, axis=0)


def narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """So many elements of a dim, from a place on."""
    first = int(start) + (input.shape[dim] if int(start) < 0 else 0)
    return F.slice(input, axes=[dim % input.ndim], starts=[first], ends=[first + length])


def matrix_transpose(x: Tensor, name: Any = None) -> Tensor:
    """The last two dims, swapped."""
    return oprack.transpose(x, [*range(x.ndim - 2), x.ndim - 1, x.ndim - 2])


def baddbmm(
    input: Tensor, x: Tensor, y: Tensor, beta: float = 1.0, alpha: float = 1.0, out_dtype: Any = None, name: Any = None
) -> Tensor:
    """beta times a tensor, and alpha times the products of matrices."""
    found = input * beta + oprack.bmm(x, y) * alpha
    return found if out_dtype is None else found.astype(dtype_name(out_dtype))


def block_diag(inputs: Any, name: Any = None) -> Tensor:
    """Matrices along the diagonal of one, with zeros elsewhere."""
    parts = [oprack.reshape(t, [1, -1]) if t.ndim < 2 else t for t in inputs]
    width, rows, before = sum(p.shape[1] for p in parts), [], 0
    for part in parts:
        after = width - before - part.shape[1]
        rows.append(F.pad(part, paddings=[0, 0, before, after], pad_value=0.0))
        before += part.shape[1]
    return oprack.concat(rows, axis=0)


def sinc(x: Tensor, name: Any = None) -> Tensor:
    """sin(pi x) / (pi x), which is 1 at 0."""
    scaled = floating(x) * math.pi
    zero = scaled == 0.0
    safe = oprack.where(zero, oprack.ones_like(scaled), scaled)
    return oprack.where(zero, oprack.ones_like(scaled), oprack.sin(safe) / safe)


def gammaln(x: Tensor, name: Any = None) -> Tensor:
    """The logarithm of the gamma function's absolute value."""
    return oprack.lgamma(x)


def masked_scatter(x: Tensor, mask: Tensor, value: Tensor, name: Any = None) -> Tensor:
    """Values in order, where a mask is True."""
    wide = oprack.broadcast_to(mask, list(x.shape))
    order = oprack.cumsum(oprack.reshape(wide, [-1]).astype("int64"), axis=0) - 1
    places = oprack.maximum(order, oprack.zeros_like(order))
    taken = oprack.reshape(F.gather(oprack.reshape(value, [-1]), places), list(x.shape))
    return oprack.where(wide, taken.astype(x.dtype), x)


def take_along_dim(input: Tensor, indices: Tensor, dim: Any = None) -> Tensor:
    """Elements by their places along a dim; of all elements if none is given."""
    if dim is None:
        return oprack.take_along_axis(oprack.reshape(input, [-1]), oprack.reshape(indices, [-1]), 0)
    return oprack.take_along_axis(input, indices, dim)


def reduce_as(x: Tensor, target: Tensor, name: Any = None) -> Tensor:
    """Sums of elements, in the shape of another tensor that broadcasts to this one."""
    extra = x.ndim - target.ndim
    axes = [*range(extra), *(i + extra for i, n in enumerate(target.shape) if n == 1 and x.shape[i + extra] != 1)]
    found = oprack.sum(x, axis=axes, keepdim=True) if axes else x
    return oprack.reshape(found, list(target.shape))


def broadcast_shapes(*shapes: Any) -> list[int]:
    """The shape to which shapes broadcast."""
    return [int(n) for n in np.broadcast_shapes(*[tuple(s) for s in shapes])]


def rand_like(
    input: Tensor, name: Any = None, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Random numbers from 0 to 1, in the shape of a tensor."""
    return oprack.rand(list(input.shape), dtype=dtype_name(dtype) or input.dtype)


def randn_like(
    input: Tensor, name: Any = None, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Normal random numbers, in the shape of a tensor."""
    return oprack.randn(list(input.shape), dtype=dtype_name(dtype) or input.dtype)


def swiglu(x: Tensor, y: Any = None, name: Any = None) -> Tensor:
    """silu(x) times y; of one tensor, of its halves."""
    if y is None:
        x, y = F.split(x, num=2, axis=-1)
    return oprack.nn.functional.silu(x) * y


def rms_norm(input: Tensor, normalized_shape: Any, weight: Any = None, eps: float = 1e-5, name: Any = None) -> Tensor:
    """Divided by the root of the mean square over the last dims."""
    count = 1 if isinstance(normalized_shape, int) else len(normalized_shape)
    mean = oprack.mean(input * input, axis=list(range(input.ndim - count, input.ndim)), keepdim=True)
    found = input * oprack.rsqrt(mean + eps)
    return found if weight is None else found * weight
