"""Values that variables hold, and where they live: LoDTensor, SelectedRows, sparse tensors, Scope, Place."""

import sys
from types import ModuleType
from typing import Any, NoReturn

from oprack.tensor.arrays import numpy_dtype, plain_array
from oprack.tensor.kinds import plain_value
from oprack.tensor.lod_tensor import LoDTensor, LoDTensorArray, check_lod, lod_from_lengths, lod_to_lengths
from oprack.tensor.place import CPUPlace, CUDAPinnedPlace, CUDAPlace, Place
from oprack.tensor.scope import Scope, Variable
from oprack.tensor.selected_rows import SelectedRows, merge_rows
from oprack.tensor.shape_only import ShapeOnly
from oprack.tensor.sparse_tensor import SparseCooTensor, SparseCsrTensor, SparseTensor, SparseValue

__all__ = [
    "CPUPlace",
    "CUDAPinnedPlace",
    "CUDAPlace",
    "LoDTensor",
    "LoDTensorArray",
    "Place",
    "Scope",
    "SelectedRows",
    "ShapeOnly",
    "SparseCooTensor",
    "SparseCsrTensor",
    "SparseTensor",
    "SparseValue",
    "Variable",
    "check_lod",
    "lod_from_lengths",
    "lod_to_lengths",
    "merge_rows",
    "numpy_dtype",
    "plain_array",
    "plain_value",
]


class _TensorModule(ModuleType):
    """`oprack.tensor` is this package, and for users of PyTorch a function that it is not."""

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse the call: a tensor is made by `oprack.to_tensor`."""
        raise TypeError("oprack.tensor is a module; write oprack.to_tensor([1.0, 2.0])")


sys.modules[__name__].__class__ = _TensorModule
