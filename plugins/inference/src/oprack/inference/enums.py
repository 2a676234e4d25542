"""Enumerations of paddle.inference, and what it says of versions."""

from __future__ import annotations

from enum import Enum

from oprack.errors import InvalidArgumentError
from oprack.types import dtype_name


class _Numbered(Enum):
    """int(member) is its number, as with Paddle's enums; members are no ints."""

    def __int__(self) -> int:
        return int(self.value)


class DataType(_Numbered):
    """dtype of a handle's data."""

    FLOAT32 = 0
    INT64 = 1
    INT32 = 2
    UINT8 = 3
    INT8 = 4
    FLOAT16 = 5
    BOOL = 6
    FLOAT64 = 7


class PlaceType(_Numbered):
    """Where a handle's data lives."""

    UNK = -1
    CPU = 0
    GPU = 1
    XPU = 2
    CUSTOM = 4


class PrecisionType(_Numbered):
    """Precision that a GPU is asked for, where models run in their own dtypes whatever it is.

    `Config.enable_mkldnn_bfloat16` and `enable_mkldnn_int8` choose another one on the CPU.
    """

    Float32 = 0
    Int8 = 1
    Half = 2
    Bfloat16 = 3


_BYTES = {"FLOAT64": 8, "INT64": 8, "FLOAT32": 4, "INT32": 4, "FLOAT16": 2, "UINT8": 1, "INT8": 1, "BOOL": 1}


def get_num_bytes_of_data_type(dtype: DataType) -> int:
    """Bytes of one element.

    Args:
        dtype: The dtype.

    Returns:
        The number.
    """
    return _BYTES[dtype.name]


def data_type_of(dtype: object) -> DataType:
    """The DataType of a dtype name. Raises InvalidArgumentError when paddle.inference has none for it."""
    name = dtype_name(dtype).upper()
    if name not in DataType.__members__:
        known = ", ".join(DataType.__members__)
        raise InvalidArgumentError(f"dtype {dtype!r} has no paddle.inference.DataType; expected one of {known}")
    return DataType[name]


PADDLE_VERSION = "2.6.2"
"""Version of Paddle whose interface and numbers oprack.inference follows."""


def get_version() -> str:
    """Versions of oprack and of the Paddle interface that it follows.

    Returns:
        A text of two lines.
    """
    from importlib_metadata import version

    return f"version: {PADDLE_VERSION}\noprack: {version('oprack')}\n"


def get_trt_compile_version() -> tuple[int, int, int]:
    """(0, 0, 0): there is no TensorRT.

    Returns:
        Three zeros.
    """
    return (0, 0, 0)


def get_trt_runtime_version() -> tuple[int, int, int]:
    """(0, 0, 0): there is no TensorRT.

    Returns:
        Three zeros.
    """
    return (0, 0, 0)
