"""The VarType.TensorDesc message that precedes the data of a saved tensor.

protobuf is imported by the functions, not by the module: a process that never reads a saved tensor doesn't pay for it.
"""

from __future__ import annotations

from collections.abc import Sequence

from oprack.errors import CorruptParameterError, InvalidArgumentError
from oprack.types import DTYPE_NAMES, NOT_ON_WIRE, VarType


def read_tensor_desc(data: bytes) -> tuple[VarType, tuple[int, ...]]:
    """Parse a TensorDesc message.

    Args:
        data: The serialized message.

    Returns:
        (dtype, dims).

    Raises:
        CorruptParameterError: When the bytes are not a TensorDesc, or its dtype is unknown.
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
    """Serialize a TensorDesc message.

    Raises:
        InvalidArgumentError: Fluid's format has no number for the dtype.
    """
    from oprack.desc.wire_fields import pb

    if dtype in NOT_ON_WIRE:
        raise InvalidArgumentError(
            f"a tensor of {DTYPE_NAMES[dtype]} can't be written: Fluid's format lacks the dtype; cast it first: "
            "x.astype('int64')"
        )

    msg = pb.VarType.TensorDesc(data_type=dtype, dims=dims)
    return msg.SerializeToString()  # type: ignore[no-any-return]
