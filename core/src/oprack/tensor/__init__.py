"""Values that variables hold, and where they live: LoDTensor, SelectedRows, LoDTensorArray, Scope, Place."""

from oprack.tensor.dtype import numpy_dtype
from oprack.tensor.lod_tensor import LoDTensor, LoDTensorArray, check_lod, lod_from_lengths, lod_to_lengths
from oprack.tensor.place import CPUPlace, CUDAPinnedPlace, CUDAPlace, Place
from oprack.tensor.plain import plain_array
from oprack.tensor.scope import Scope, Variable
from oprack.tensor.selected_rows import SelectedRows, merge_rows
from oprack.tensor.shape_only import ShapeOnly
from oprack.tensor.values import plain_value

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
    "Variable",
    "check_lod",
    "lod_from_lengths",
    "lod_to_lengths",
    "merge_rows",
    "numpy_dtype",
    "plain_array",
    "plain_value",
]
