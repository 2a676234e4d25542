"""The VarType.TensorDesc message that stands in front of the data of a saved tensor.

protobuf is imported when one is met, and not with this module.
"""

from __future__ import annotations

from collections.abc import Sequence

from oprack.errors import CorruptParameterError
from oprack.types import VarType


def read_tensor_desc(data: bytes) -> tuple[VarType, tuple[int, ...]]:
    """Dtype and dims.

    Raises:
        CorruptParameterError: When the bytes are no TensorDesc.
    """
    from google.protobuf.message import DecodeError

    from oprack.desc.wire_fields import VAR_TYPES, pb

    msg = pb.VarType.TensorDesc()
    try:
        msg.ParseFromString(data)
    except DecodeError as e:
        raise CorruptParameterError(f"{len(data)} bytes are no TensorDesc: {e}") from None
    if not msg.HasField("data_type"):
        raise CorruptParameterError(f"a TensorDesc of {len(data)} bytes names no dtype that is known")
    return VAR_TYPES[msg.data_type], tuple(msg.dims)


def write_tensor_desc(dtype: VarType, dims: Sequence[int]) -> bytes:
    """The bytes of the message."""
    from oprack.desc.wire_fields import pb

    msg = pb.VarType.TensorDesc(data_type=dtype, dims=dims)
    return msg.SerializeToString()  # type: ignore[no-any-return]
