"""Kernels of slice: a view of a tensor, a part of an array."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.tensor import LoDTensor, LoDTensorArray

from oprack_tensor.dims import slice_range, to_ints


def _cut(dims, axes, starts, ends):
    """Index of the part."""
    index = [slice(None)] * len(dims)
    for a, start, end in zip(axes, starts, ends, strict=True):
        index[a] = slice(*slice_range(start, end, dims[a]))
    return tuple(index)


@kernel("slice", place=("cpu", "cuda"), view=True)
def slice_tensor(
    Input,
    StartsTensor=None,
    EndsTensor=None,
    StartsTensorList=None,
    EndsTensorList=None,
    *,
    axes,
    starts,
    ends,
    decrease_axis,
):
    first = to_ints(StartsTensor, StartsTensorList, starts)
    last = to_ints(EndsTensor, EndsTensorList, ends)
    part = Input[_cut(Input.shape, axes, first, last)]
    return part.squeeze(tuple(decrease_axis)) if decrease_axis else part


@kernel("slice", place=("cpu", "cuda"))
def slice_array(
    Input: LoDTensorArray,
    StartsTensor=None,
    EndsTensor=None,
    StartsTensorList=None,
    EndsTensorList=None,
    *,
    starts,
    ends,
    decrease_axis,
):
    first, last = slice_range(
        to_ints(StartsTensor, StartsTensorList, starts)[0], to_ints(EndsTensor, EndsTensorList, ends)[0], len(Input)
    )
    copies = [None if t is None else LoDTensor(t.array.copy(), t.lod, check=False) for t in Input[first:last]]
    return copies[0] if decrease_axis else LoDTensorArray(copies)


@kernel("slice_grad", place=("cpu", "cuda"))
def slice_grad(
    Input,
    StartsTensor=None,
    EndsTensor=None,
    StartsTensorList=None,
    EndsTensorList=None,
    Out_grad=None,
    *,
    axes,
    starts,
    ends,
    xp,
):
    grad = xp.zeros(Input.shape, Out_grad.dtype)
    first = to_ints(StartsTensor, StartsTensorList, starts)
    last = to_ints(EndsTensor, EndsTensorList, ends)
    part = grad[_cut(Input.shape, axes, first, last)]
    part[...] = Out_grad.reshape(part.shape)
    return grad


def _array_grad(array, first, last, parts, xp):
    grads = [LoDTensor(xp.zeros_like(t.array), t.lod, check=False) for t in array]
    for i, part in zip(range(*slice_range(first, last, len(array))), parts, strict=True):
        if part is not None:
            grads[i] = LoDTensor(part.array.copy(), part.lod, check=False)
    return LoDTensorArray(grads)


@kernel("slice_grad", place=("cpu", "cuda"))
def slice_array_grad(
    Input: LoDTensorArray,
    StartsTensor=None,
    EndsTensor=None,
    StartsTensorList=None,
    EndsTensorList=None,
    Out_grad: LoDTensorArray = None,
    *,
    starts,
    ends,
    xp,
):
    first = to_ints(StartsTensor, StartsTensorList, starts)[0]
    return _array_grad(Input, first, to_ints(EndsTensor, EndsTensorList, ends)[0], Out_grad, xp)


@kernel("slice_grad", place=("cpu", "cuda"))
def slice_array_element_grad(
    Input: LoDTensorArray,
    StartsTensor=None,
    EndsTensor=None,
    StartsTensorList=None,
    EndsTensorList=None,
    Out_grad: LoDTensor = None,
    *,
    starts,
    ends,
    xp,
):
    first = to_ints(StartsTensor, StartsTensorList, starts)[0]
    return _array_grad(Input, first, to_ints(EndsTensor, EndsTensorList, ends)[0], [Out_grad], xp)
