"""`to_tensor`: creates a tensor from a user's values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oprack.device import transform_sparse
from oprack.eager_tensor import Tensor, new_tensor
from oprack.eager_tensor.devices import context, pool, required_place
from oprack.eager_tensor.meta import CPU, dense_array, meta_of_value, tensor_meta
from oprack.tensor import CUDAPlace, LoDTensor, LoDTensorArray, Place, SparseValue, check_lod, numpy_dtype, plain_value

_WITH_ARRAYS = (LoDTensor, SparseValue, LoDTensorArray)


def to_tensor(
    data: Any,
    dtype: Any = None,
    *,
    lod: Sequence[Sequence[int]] | None = None,
    place: Place | str | None = None,
    requires_grad: bool = False,
    name: str | None = None,
) -> Tensor:
    """A tensor of an array, a number, nested lists, a LoDTensor, sparse value or LoDTensorArray; arrays are copied.

    Args:
        data: The values.
        dtype: Default: the data's; Python floats become float32.
        lod: Offsets of its sequences, per level.
        place: A Place or its name ("cpu", "cuda:1"); default: the data's, or the CPU.
        requires_grad: Whether calls with it are recorded, so that it gets a gradient.
        name: A name, for messages and states.

    Returns:
        The tensor.

    Raises:
        InvalidArgumentError: The data is no array, or has a dtype that no tensor has.
        InvalidLoDError: The offsets do not fit the rows.
    """
    if place is not None:
        place = required_place(place, "to_tensor")
    if isinstance(data, Tensor):
        data, place = data.value, place or data.place
    if isinstance(data, _WITH_ARRAYS):
        data = plain_value(data)
    tensor: Tensor
    if isinstance(data, SparseValue) and place is not None:
        data = transform_sparse(data, place, pool())
    if isinstance(data, SparseValue | LoDTensorArray):
        tensor = new_tensor(data, meta_of_value(data))
    else:
        if isinstance(data, LoDTensor):
            lod = data.lod if lod is None else lod
            source, array = data.place, data.array
        else:
            array = data if hasattr(data, "__cuda_array_interface__") else dense_array(data)
            source = CPU
            if hasattr(array, "device") and hasattr(array, "get"):
                source = CUDAPlace(int(array.device.id))
        if dtype is not None:
            array = array.astype(numpy_dtype(dtype))
        place = place or source
        array = _moved(array, source, place)
        offsets = check_lod(lod, array.shape[0] if array.ndim else 0) if lod else []
        tensor = new_tensor(array, tensor_meta(LoDTensor, array.dtype, place, len(offsets)), offsets)
    tensor.name = name
    tensor.requires_grad = requires_grad
    return tensor


def _moved(array: Any, source: Place, place: Place) -> Any:
    """Copy an array to a place, which may be its own."""
    if source == place:
        return array.copy(order="C")
    return context(place).from_host(context(source).to_host(array))
