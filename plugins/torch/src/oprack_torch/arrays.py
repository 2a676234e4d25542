"""Tensors of torch as those of oprack and back, on the same memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from oprack.bridge import Abstract
from oprack.eager_tensor import Tensor, new_tensor
from oprack.eager_tensor.meta import TensorMeta, tensor_meta
from oprack.errors import InvalidArgumentError
from oprack.tensor import LoDTensor, numpy_dtype
from oprack.types import dtype_name

from oprack_torch.dims import as_dim

_NAMES = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64",
    "complex128",
)  # fmt: skip
DTYPES: dict[str, torch.dtype] = {name: getattr(torch, name) for name in _NAMES}
"""torch's dtypes by the names that oprack has for them."""
NAMES = {dtype: name for name, dtype in DTYPES.items()}
METAS: dict[torch.dtype, TensorMeta] = {
    dtype: tensor_meta(LoDTensor, numpy_dtype(name)) for name, dtype in DTYPES.items()
}
"""What oprack's generated calls depend on, for tensors without LoD."""
_BFLOAT16 = numpy_dtype("bfloat16")


def array_of(tensor: torch.Tensor) -> np.ndarray:
    """A tensor's memory as an array.

    Args:
        tensor: A tensor on the CPU.

    Returns:
        The array; nothing is copied, unless the tensor is a conjugated or negated view.
    """
    if tensor.requires_grad:
        tensor = tensor.detach()
    if tensor.dtype is torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(_BFLOAT16)
    found: np.ndarray = tensor.resolve_conj().resolve_neg().numpy()
    return found


def from_torch(tensor: torch.Tensor, lod: Any = ()) -> Tensor:
    """A tensor of torch as one of oprack, on the same memory.

    Args:
        tensor: A dense tensor on the CPU.
        lod: Offsets of its sequences per level, outermost first, as lists.

    Returns:
        The tensor; it has no gradient.

    Raises:
        InvalidArgumentError: The tensor lies elsewhere, is sparse or nested, or oprack has no such dtype.
    """
    meta = METAS.get(tensor.dtype)
    if meta is None or tensor.device.type != "cpu" or tensor.layout is not torch.strided:
        raise InvalidArgumentError(
            f"a tensor {tensor.dtype} {tensor.layout} on {tensor.device} was passed to an op of oprack; expected a "
            f"dense one on the CPU of dtype {', '.join(DTYPES)}; move it by .cpu(), or convert it by .to()"
        )
    if lod:
        meta = tensor_meta(LoDTensor, meta.dtype, lod_level=len(lod))
    return new_tensor(array_of(tensor), meta, lod)


def to_torch(tensor: Tensor, inputs: Iterable[Tensor] = ()) -> torch.Tensor:
    """A tensor of oprack as one of torch, on the same memory where that is its own.

    Args:
        tensor: A dense tensor on the CPU.
        inputs: Tensors of oprack that the result must not share memory with.

    Returns:
        The tensor, contiguous.

    Raises:
        InvalidArgumentError: The tensor is sparse, or an array of tensors.
    """
    if tensor._meta.container is not LoDTensor:
        raise InvalidArgumentError(
            f"{tensor.describe()} was returned by an op of oprack; torch can be given dense tensors alone. Where an "
            "attribute is_sparse asks for it, leave that at False"
        )
    return torch_of(tensor._value, inputs)


def torch_of(value: Any, inputs: Iterable[Tensor] = ()) -> torch.Tensor:
    """As `to_torch`, of an array."""
    array = value if value.__class__ is np.ndarray else np.asarray(value)
    flags, dtype = array.flags, array.dtype
    if not flags.carray or not dtype.isnative:  # rows without gaps, aligned and writeable
        array = np.array(array, array.dtype.newbyteorder("="), order="C")
    elif not flags.owndata or any([array is x._value for x in inputs]):
        if any(np.may_share_memory(array, x._value) for x in inputs):
            array = array.copy()
    if dtype.kind == "V":  # as NumPy sees bfloat16
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def abstract_of(tensor: torch.Tensor | None, lod_level: int = 0) -> Abstract | None:
    """What an op's rules may know of a tensor; its dims may be symbols."""
    if tensor is None:
        return None
    name = NAMES.get(tensor.dtype)
    if name is None:
        raise InvalidArgumentError(
            f"a tensor {tensor.dtype} was passed to an op of oprack; expected {', '.join(DTYPES)}"
        )
    return Abstract(tuple(map(as_dim, tensor.shape)), name, lod_level)


def dtype_number(dtype: Any) -> Any:
    """A dtype of torch as the name that attributes take; everything else as it is."""
    return dtype_name(NAMES[dtype]) if isinstance(dtype, torch.dtype) else dtype
