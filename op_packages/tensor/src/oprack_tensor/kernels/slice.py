"""Kernels of slice: a view of a tensor, a part of an array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oprack.kernel import Array, ArrayModule, RequiredArray, kernel
from oprack.tensor import LoDTensor, LoDTensorArray, ShapeOnly

from oprack_tensor.dims import slice_range, to_ints


def _cut(dims: tuple[int, ...], axes: Sequence[int], starts: Sequence[int], ends: Sequence[int]) -> tuple[slice, ...]:
    """Index of the part."""
    index = [slice(None)] * len(dims)
    for a, start, end in zip(axes, starts, ends, strict=True):
        index[a] = slice(*slice_range(start, end, dims[a]))
    return tuple(index)


@kernel("slice", place=("cpu", "cuda"), view=True)
def slice_tensor(
    Input: Array,
    StartsTensor: Array | None = None,
    EndsTensor: Array | None = None,
    StartsTensorList: list[Array] | None = None,
    EndsTensorList: list[Array] | None = None,
    *,
    axes: list[int],
    starts: list[int],
    ends: list[int],
    decrease_axis: list[int],
) -> Array:
    first = to_ints(StartsTensor, StartsTensorList, starts)
    last = to_ints(EndsTensor, EndsTensorList, ends)
    part = Input[_cut(Input.shape, axes, first, last)]
    return part.squeeze(tuple(decrease_axis)) if decrease_axis else part


@kernel("slice", place=("cpu", "cuda"))
def slice_array(
    Input: LoDTensorArray,
    StartsTensor: Array | None = None,
    EndsTensor: Array | None = None,
    StartsTensorList: list[Array] | None = None,
    EndsTensorList: list[Array] | None = None,
    *,
    starts: list[int],
    ends: list[int],
    decrease_axis: list[int],
) -> LoDTensor | LoDTensorArray | None:
    first, last = slice_range(
        to_ints(StartsTensor, StartsTensorList, starts)[0], to_ints(EndsTensor, EndsTensorList, ends)[0], len(Input)
    )
    copies = [None if t is None else LoDTensor(t.array.copy(), t.lod, check=False) for t in Input[first:last]]
    return copies[0] if decrease_axis else LoDTensorArray(copies)


@kernel("slice_grad", place=("cpu", "cuda"))
def slice_grad(
    Input: ShapeOnly,
    StartsTensor: Array | None = None,
    EndsTensor: Array | None = None,
    StartsTensorList: list[Array] | None = None,
    EndsTensorList: list[Array] | None = None,
    Out_grad: RequiredArray = None,
    *,
    axes: list[int],
    starts: list[int],
    ends: list[int],
    xp: ArrayModule,
) -> Array:
    grad = xp.zeros(Input.shape, Out_grad.dtype)
    first = to_ints(StartsTensor, StartsTensorList, starts)
    last = to_ints(EndsTensor, EndsTensorList, ends)
    part = grad[_cut(Input.shape, axes, first, last)]
    part[...] = Out_grad.reshape(part.shape)
    return grad


def _array_grad(
    array: LoDTensorArray, first: int, last: int, parts: Sequence[LoDTensor | None], xp: ArrayModule
) -> LoDTensorArray:
    grads = [None if t is None else LoDTensor(xp.zeros_like(t.array), t.lod, check=False) for t in array]
    for i, part in zip(range(*slice_range(first, last, len(array))), parts, strict=True):
        if part is not None:
            grads[i] = LoDTensor(part.array.copy(), part.lod, check=False)
    return LoDTensorArray(grads)


@kernel("slice_grad", place=("cpu", "cuda"))
def slice_array_grad(
    Input: LoDTensorArray,
    StartsTensor: Array | None = None,
    EndsTensor: Array | None = None,
    StartsTensorList: list[Array] | None = None,
    EndsTensorList: list[Array] | None = None,
    Out_grad: LoDTensorArray | Any = None,
    *,
    starts: list[int],
    ends: list[int],
    xp: ArrayModule,
) -> LoDTensorArray:
    first = to_ints(StartsTensor, StartsTensorList, starts)[0]
    return _array_grad(Input, first, to_ints(EndsTensor, EndsTensorList, ends)[0], Out_grad, xp)


@kernel("slice_grad", place=("cpu", "cuda"))
def slice_array_element_grad(
    Input: LoDTensorArray,
    StartsTensor: Array | None = None,
    EndsTensor: Array | None = None,
    StartsTensorList: list[Array] | None = None,
    EndsTensorList: list[Array] | None = None,
    Out_grad: LoDTensor | Any = None,
    *,
    starts: list[int],
    ends: list[int],
    xp: ArrayModule,
) -> LoDTensorArray:
    first = to_ints(StartsTensor, StartsTensorList, starts)[0]
    return _array_grad(Input, first, to_ints(EndsTensor, EndsTensorList, ends)[0], [Out_grad], xp)
