"""Kernels of strided_slice: a view, and its adjoint."""

from __future__ import annotations

from oprack.kernel import kernel

from oprack_tensor.dims import strided_slice_of, to_ints


def _cut(dims, axes, starts, ends, strides, decrease_axis):
    index = [slice(None)] * len(dims)
    gone = {a % len(dims) for a in decrease_axis}
    for a, start, end, step in zip(axes, starts, ends, strides, strict=True):
        index[a] = strided_slice_of(start, end, step, dims[a], a % len(dims) in gone)
    return tuple(index)


@kernel("strided_slice", place=("cpu", "cuda"), view=True)
def strided_slice(
    Input,
    StartsTensor=None,
    StartsTensorList=None,
    EndsTensor=None,
    EndsTensorList=None,
    StridesTensor=None,
    StridesTensorList=None,
    *,
    axes,
    starts,
    ends,
    strides,
    decrease_axis,
):
    starts = to_ints(StartsTensor, StartsTensorList, starts)
    ends = to_ints(EndsTensor, EndsTensorList, ends)
    strides = to_ints(StridesTensor, StridesTensorList, strides)
    part = Input[_cut(Input.shape, axes, starts, ends, strides, decrease_axis)]
    return part.squeeze(tuple(decrease_axis)) if decrease_axis else part


@kernel("strided_slice_grad", place=("cpu", "cuda"))
def strided_slice_grad(
    Input,
    StartsTensor=None,
    StartsTensorList=None,
    EndsTensor=None,
    EndsTensorList=None,
    StridesTensor=None,
    StridesTensorList=None,
    Out_grad=None,
    *,
    axes,
    starts,
    ends,
    strides,
    decrease_axis,
    xp,
):
    starts = to_ints(StartsTensor, StartsTensorList, starts)
    ends = to_ints(EndsTensor, EndsTensorList, ends)
    strides = to_ints(StridesTensor, StridesTensorList, strides)
    grad = xp.zeros(Input.shape, Out_grad.dtype)
    part = grad[_cut(Input.shape, axes, starts, ends, strides, decrease_axis)]
    part[...] = Out_grad.reshape(part.shape)
    return grad
