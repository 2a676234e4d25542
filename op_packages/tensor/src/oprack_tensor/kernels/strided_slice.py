"""Kernels of strided_slice: a view, and its adjoint."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.kernel import Array, ArrayModule, RequiredArray, kernel
from oprack.tensor import ShapeOnly

from oprack_tensor.dims import strided_slice_of, to_ints


def _cut(
    dims: tuple[int, ...],
    axes: Sequence[int],
    starts: Sequence[int],
    ends: Sequence[int],
    strides: Sequence[int],
    decrease_axis: Sequence[int],
) -> tuple[slice, ...]:
    index = [slice(None)] * len(dims)
    gone = {a % len(dims) for a in decrease_axis}
    for a, start, end, step in zip(axes, starts, ends, strides, strict=True):
        index[a] = strided_slice_of(start, end, step, dims[a], a % len(dims) in gone)
    return tuple(index)


@kernel("strided_slice", place=("cpu", "cuda"), view=True)
def strided_slice(
    Input: Array,
    StartsTensor: Array | None = None,
    StartsTensorList: list[Array] | None = None,
    EndsTensor: Array | None = None,
    EndsTensorList: list[Array] | None = None,
    StridesTensor: Array | None = None,
    StridesTensorList: list[Array] | None = None,
    *,
    axes: list[int],
    starts: list[int],
    ends: list[int],
    strides: list[int],
    decrease_axis: list[int],
) -> Array:
    starts = to_ints(StartsTensor, StartsTensorList, starts)
    ends = to_ints(EndsTensor, EndsTensorList, ends)
    strides = to_ints(StridesTensor, StridesTensorList, strides)
    part = Input[_cut(Input.shape, axes, starts, ends, strides, decrease_axis)]
    return part.squeeze(tuple(decrease_axis)) if decrease_axis else part


@kernel("strided_slice_grad", place=("cpu", "cuda"))
def strided_slice_grad(
    Input: ShapeOnly,
    StartsTensor: Array | None = None,
    StartsTensorList: list[Array] | None = None,
    EndsTensor: Array | None = None,
    EndsTensorList: list[Array] | None = None,
    StridesTensor: Array | None = None,
    StridesTensorList: list[Array] | None = None,
    Out_grad: RequiredArray = None,
    *,
    axes: list[int],
    starts: list[int],
    ends: list[int],
    strides: list[int],
    decrease_axis: list[int],
    xp: ArrayModule,
) -> Array:
    starts = to_ints(StartsTensor, StartsTensorList, starts)
    ends = to_ints(EndsTensor, EndsTensorList, ends)
    strides = to_ints(StridesTensor, StridesTensorList, strides)
    grad = xp.zeros(Input.shape, Out_grad.dtype)
    part = grad[_cut(Input.shape, axes, starts, ends, strides, decrease_axis)]
    part[...] = Out_grad.reshape(part.shape)
    return grad
