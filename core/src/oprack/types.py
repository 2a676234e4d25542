"""The enums of the wire format: `VarType` (variable kinds and dtypes) and `AttrType`.

Numbers are Paddle's (framework.proto). Op definitions import this module, so it imports no array library; the way to
and from NumPy dtypes is `oprack.tensor.arrays`.
"""

from __future__ import annotations

from collections.abc import Hashable
from enum import IntEnum

from oprack.errors import InvalidArgumentError


class VarType(IntEnum):
    """Kind of a variable, or the dtype of its elements: one enum on the wire, as in Paddle."""

    BOOL = 0
    INT16 = 1
    INT32 = 2
    INT64 = 3
    FP16 = 4
    FP32 = 5
    FP64 = 6
    LOD_TENSOR = 7
    SELECTED_ROWS = 8
    FEED_MINIBATCH = 9
    FETCH_LIST = 10
    STEP_SCOPES = 11
    LOD_RANK_TABLE = 12
    LOD_TENSOR_ARRAY = 13
    PLACE_LIST = 14
    READER = 15
    RAW = 17
    TUPLE = 18
    SIZE_T = 19
    UINT8 = 20
    INT8 = 21
    BF16 = 22
    COMPLEX64 = 23
    COMPLEX128 = 24
    STRING = 25
    STRINGS = 26
    VOCAB = 27
    FEED_LIST = 28
    PSTRING = 29
    SPARSE_COO = 30
    SPARSE_CSR = 31
    # Dtypes of eager tensors for which Fluid has no number: no file holds them
    UINT16 = 1001
    UINT32 = 1002


NOT_ON_WIRE = (VarType.UINT16, VarType.UINT32)
"""Dtypes that programs and files can't hold, since Fluid's format has no number for them."""


PER_RUN_KINDS = (VarType.FEED_MINIBATCH, VarType.FETCH_LIST)
"""Kinds of variables that belong to one run although programs declare them persistable."""


class AttrType(IntEnum):
    """Type of an op's attribute."""

    INT = 0
    FLOAT = 1
    STRING = 2
    INTS = 3
    FLOATS = 4
    STRINGS = 5
    BOOLEAN = 6
    BOOLEANS = 7
    BLOCK = 8
    LONG = 9
    BLOCKS = 10
    LONGS = 11
    FLOAT64S = 12
    VAR = 13
    VARS = 14
    FLOAT64 = 15
    SCALAR = 16
    SCALARS = 17


EMPTY_VAR = "@EMPTY@"
"""Name that stands for "no variable" in a slot, as gradient ops have it."""

GRAD_SUFFIX = "@GRAD"
"""Ends the name of a variable's gradient, and of the slot that holds it."""

DTYPE_NAMES: dict[VarType, str] = {
    VarType.BOOL: "bool",
    VarType.INT8: "int8",
    VarType.UINT8: "uint8",
    VarType.INT16: "int16",
    VarType.INT32: "int32",
    VarType.INT64: "int64",
    VarType.UINT16: "uint16",
    VarType.UINT32: "uint32",
    VarType.SIZE_T: "uint64",
    VarType.FP16: "float16",
    VarType.BF16: "bfloat16",
    VarType.FP32: "float32",
    VarType.FP64: "float64",
    VarType.COMPLEX64: "complex64",
    VarType.COMPLEX128: "complex128",
}
"""Name of each dtype as NumPy (for bfloat16: ml_dtypes) spells it."""

_BY_NAME = {name: vt for vt, name in DTYPE_NAMES.items()}

FLOATS = frozenset({"float32", "float64"})
HALF_FLOATS = frozenset({"float16", "bfloat16"})
INTEGERS = frozenset({"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"})
COMPLEX = frozenset({"complex64", "complex128"})
BOOL = frozenset({"bool"})
ALL_DTYPES = FLOATS | HALF_FLOATS | INTEGERS | COMPLEX | BOOL


# NumPy makes the name of a dtype anew each time that it is asked
_names: dict[object, str] = {}


def dtype_name(dtype: object) -> str:
    """Name of a dtype given as a name, a `VarType` (or its number) or anything whose str() is a dtype's name.

    Args:
        dtype: The dtype.

    Returns:
        The name, such as "float32".

    Raises:
        InvalidArgumentError: It is no dtype.
    """
    if isinstance(dtype, str) and dtype in _BY_NAME:
        return dtype
    if isinstance(dtype, int) and not isinstance(dtype, bool):
        try:
            return DTYPE_NAMES[VarType(dtype)]
        except (KeyError, ValueError):
            raise InvalidArgumentError(
                f"{dtype!r} is not the number of a dtype; expected one of "
                + ", ".join(f"{int(k)} ({v})" for k, v in DTYPE_NAMES.items())
            ) from None
    try:
        return _names[dtype]
    except (KeyError, TypeError):  # not met before, or not hashable
        pass
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    if name in _BY_NAME:
        if isinstance(dtype, Hashable):
            _names[dtype] = name
        return name
    raise InvalidArgumentError(f"{dtype!r} is not a dtype; expected one of {', '.join(_BY_NAME)}")


def dtype_enum(dtype: object) -> VarType:
    """`VarType` number of a dtype given in any of the ways that `dtype_name` accepts.

    Args:
        dtype: The dtype.

    Returns:
        The VarType.
    """
    if type(dtype) is VarType and dtype in DTYPE_NAMES:
        return dtype
    return _BY_NAME[dtype_name(dtype)]


_COMPLEX_OF = {"float32": "complex64", "float64": "complex128"}
_REAL_OF = {complex_: real for real, complex_ in _COMPLEX_OF.items()}


def complex_dtype(dtype: str) -> str:
    """Name of the dtype of complex numbers whose parts have this dtype; a complex dtype stays.

    Args:
        dtype: The dtype's name.

    Returns:
        The name.
    """
    return _COMPLEX_OF.get(dtype, dtype)


def real_dtype(dtype: str) -> str:
    """Name of the dtype of the parts of complex numbers; a real dtype stays.

    Args:
        dtype: The dtype's name.

    Returns:
        The name.
    """
    return _REAL_OF.get(dtype, dtype)
