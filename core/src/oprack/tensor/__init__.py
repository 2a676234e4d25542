"""Values that variables hold, and where they live: LoDTensor, SelectedRows, sparse tensors, Scope, Place."""

import sys
from types import ModuleType
from typing import Any

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
    """`oprack.tensor` is this package, and a function that makes tensors to users of PyTorch and Paddle."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The same as `oprack.to_tensor`."""
        import oprack

        return oprack.to_tensor(*args, **kwargs)


sys.modules[__name__].__class__ = _TensorModule
