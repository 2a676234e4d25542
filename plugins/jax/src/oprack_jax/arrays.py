"""Arrays of jax as tensors of oprack and back."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from oprack.bridge import Abstract
from oprack.eager_tensor import Tensor, new_tensor
from oprack.eager_tensor.meta import tensor_meta
from oprack.errors import InvalidArgumentError
from oprack.tensor import LoDTensor, numpy_dtype
from oprack.types import dtype_name

from oprack_jax.sequences import Lod


def from_jax(array: Any, lod: Lod = ()) -> Tensor:
    """An array as a tensor of oprack, on the same memory where it lies on the CPU.

    Args:
        array: An array of jax or NumPy.
        lod: Offsets of its sequences per level, outermost first.

    Returns:
        The tensor.
    """
    value = np.asarray(array)
    return new_tensor(value, tensor_meta(LoDTensor, value.dtype, lod_level=len(lod)), [list(level) for level in lod])


def array_of(tensor: Tensor) -> np.ndarray:
    """A dense tensor of oprack as an array of the dtype that jax has for it, which is narrower without jax_enable_x64.

    Raises:
        InvalidArgumentError: The tensor is sparse, or an array of tensors.
    """
    if tensor._meta.container is not LoDTensor:
        raise InvalidArgumentError(
            f"{tensor.describe()} was returned by an op of oprack; jax can be given dense tensors alone. Where an "
            "attribute is_sparse asks for it, leave that at False"
        )
    value = np.asarray(tensor._value)
    return value.astype(jax.dtypes.canonicalize_dtype(value.dtype), copy=False)


def to_jax(tensor: Tensor) -> jax.Array:
    """A tensor of oprack as an array of jax, on the same memory where that is aligned as jax asks."""
    value = array_of(tensor)
    flags = value.flags
    # what others hold as well may be written to
    if flags.owndata and flags.c_contiguous and flags.writeable and value.dtype.kind in "fiuc" and value.size:
        try:
            return jax.dlpack.from_dlpack(value)
        except (BufferError, RuntimeError, TypeError, ValueError):  # a dtype of ml_dtypes, memory on an odd address
            pass
    return jax.numpy.array(value)


def abstract_of(array: Any, lod_level: int = 0) -> Abstract:
    """What an op's rules may know of an array, which may be traced."""
    return Abstract(tuple(array.shape), dtype_name(np.dtype(array.dtype)), lod_level)


def struct_of(a: Abstract) -> jax.ShapeDtypeStruct:
    """A result without values as jax has it."""
    return jax.ShapeDtypeStruct(a.shape, jax.dtypes.canonicalize_dtype(numpy_dtype(a.dtype)))
