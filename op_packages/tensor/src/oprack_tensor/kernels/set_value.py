"""Kernels of set_value."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from oprack.device import constant
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import ShapeOnly, numpy_dtype

from oprack_tensor.dims import strided_slice_of, to_ints
from oprack_tensor.kernels._reduce import sum_to

_OLD_LISTS = ("bool_values", "fp32_values", "fp64_values", "int32_values", "int64_values")  # programs before 2.5


class Bounds(NamedTuple):
    """Where the part begins and ends, and its steps, as tensors."""

    StartsTensorList: list[Array] | None = None
    EndsTensorList: list[Array] | None = None
    StepsTensorList: list[Array] | None = None


class Part(NamedTuple):
    """The part, as attributes."""

    axes: list[int]
    starts: list[int]
    ends: list[int]
    steps: list[int]
    decrease_axes: list[int]
    none_axes: list[int]


def _part(array: Array, bounds: Bounds, part: Part) -> Array:
    """View of the part, without the dims that the value lacks and with those of size 1 that it has in addition."""
    axes, *attrs, decrease_axes, none_axes = part
    starts, ends, steps = (to_ints(None, *given) for given in zip(bounds, attrs, strict=True))
    index = [slice(None)] * array.ndim
    keys: list[int | slice | None] = []
    for a, start, end, step in zip(axes, starts, ends, steps or [1] * len(axes), strict=True):
        if step == 0:
            raise InvalidArgumentError(f"op set_value: steps is {list(steps)}; expected no 0")
        n = array.shape[a]
        if step < 0 and end < -1:  # an end before the front takes the first element, too
            end = max(end + n, -1)
        index[a] = strided_slice_of(start, end, step, n)
    gone, added = {a % array.ndim for a in decrease_axes}, sorted(none_axes)
    for i in range(array.ndim):
        while added and added[0] <= i:  # none_axes counts the dims of Input
            added.pop(0)
            keys.append(None)
        keys.append(0 if i in gone else slice(None))
    return array[tuple(index)][(*keys, *[None] * len(added), ...)]


def _fitted(value: Array | ShapeOnly, part: Array) -> Array | ShapeOnly:
    """The value without the leading dims of size 1 that it has too many."""
    while value.ndim > part.ndim and value.shape[0] == 1:
        value = value.reshape(value.shape[1:])
    return value


@kernel("set_value", place=("cpu", "cuda"))
def set_value(
    Input: Array,
    bounds: Bounds,
    ValueTensor: Array | None = None,
    *,
    dtype: int,
    where: Part,
    values: list[Any],
    shape: list[int],
    out: Array | None = None,
    ctx: KernelContext,
    xp: ArrayModule,
) -> Array:
    if ValueTensor is None:
        flat = values or next((ctx.attrs[n] for n in _OLD_LISTS if ctx.attrs.get(n)), [])
        ValueTensor = constant(np.array(flat, numpy_dtype(dtype)), xp).reshape(shape)
    out = Input.copy() if out is None else out
    part = _part(out, bounds, where)
    part[...] = _fitted(ValueTensor, part).astype(out.dtype)
    return out


@kernel("set_value_grad", place=("cpu", "cuda"))
def set_value_grad(
    Out_grad: Array,
    bounds: Bounds,
    ValueTensor: ShapeOnly | None = None,
    *,
    where: Part,
    ctx: KernelContext,
    xp: ArrayModule,
) -> dict[str, Array | None]:
    input_grad = value_grad = None
    if ctx.wants("Input@GRAD"):
        input_grad = Out_grad.copy()
        _part(input_grad, bounds, where)[...] = 0
    if ctx.wants("ValueTensor@GRAD") and ValueTensor is not None:
        part = _part(Out_grad, bounds, where)
        value_grad = sum_to(part, _fitted(ValueTensor, part).shape, xp).reshape(ValueTensor.shape)
    return {"Input_grad": input_grad, "ValueTensor_grad": value_grad}
