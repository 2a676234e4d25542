"""Datatypes of the open inference protocol and the dtypes of oprack."""

from __future__ import annotations

from functools import cache

import numpy as np
from oprack.tensor import numpy_dtype

DTYPES = {
    "BOOL": "bool",
    "UINT8": "uint8",
    "INT8": "int8",
    "INT16": "int16",
    "INT32": "int32",
    "INT64": "int64",
    "FP16": "float16",
    "BF16": "bfloat16",
    "FP32": "float32",
    "FP64": "float64",
    "BYTES": "object",
}
"""Datatype of the protocol -> dtype. UINT16, UINT32 and UINT64 are no dtypes of a tensor of oprack. Nor is BYTES, but
outputs that are classified are of it, and values of pipelines; an array of objects holds one of `bytes` for each
element.
"""
TENSOR_DATATYPES = tuple(name for name in DTYPES if name != "BYTES")
DATATYPES = {dtype: datatype for datatype, dtype in DTYPES.items()}


@cache
def dtype_of(datatype: str) -> np.dtype:
    """NumPy's dtype for a datatype of the protocol. Raises KeyError."""
    return np.dtype(object) if datatype == "BYTES" else np.dtype(numpy_dtype(DTYPES[datatype]))


@cache
def dtype_name(dtype: np.dtype) -> str:
    """oprack's name of a NumPy dtype, which NumPy makes up each time it is asked."""
    return dtype.name


def datatype_of(dtype: np.dtype) -> str:
    """The protocol's name for a NumPy dtype. Raises KeyError."""
    return DATATYPES[dtype_name(dtype)]
