"""VarDesc and TensorDesc: a variable of a program as data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oprack.errors import CorruptParameterError, InvalidArgumentError
from oprack.types import DTYPE_NAMES, NOT_ON_WIRE, VarType, dtype_enum


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


class VarDesc:
    """A variable.

    Args:
        name: Its name, unique within the block.
        type: What it holds; LOD_TENSOR for most variables.
        dtype: Dtype of its elements, as a name, VarType or NumPy dtype; None where variables of its type have none.
        shape: Dims, with -1 for those that vary from batch to batch; () is a 0-D tensor, None an unknown rank.
        lod_level: How deeply its sequences are nested.

    Raises:
        InvalidArgumentError: When `dtype` is not a dtype.
    """

    __slots__ = (
        "_explicit",
        "_extra",
        "dtype",
        "is_parameter",
        "lod_level",
        "name",
        "need_check_feed",
        "persistable",
        "shape",
        "stop_gradient",
        "type",
    )

    def __init__(
        self,
        name: str,
        type: VarType = VarType.LOD_TENSOR,
        dtype: object = None,
        shape: Sequence[int] | None = None,
        lod_level: int = 0,
        *,
        persistable: bool = False,
        stop_gradient: bool = False,
        is_parameter: bool = False,
        need_check_feed: bool = False,
    ) -> None:
        self.name = name
        # The enum takes a microsecond to find a member, and loading a model makes thousands of descs.
        self.type = type if type.__class__ is VarType else VarType(type)
        self.dtype = None if dtype is None else dtype_enum(dtype)
        self.shape = None if shape is None else tuple(map(int, shape))
        self.lod_level = lod_level
        self.persistable = persistable
        self.stop_gradient = stop_gradient
        self.is_parameter = is_parameter
        self.need_check_feed = need_check_feed
        self._explicit = 0
        self._extra: dict[tuple[Any, ...], bytes] | None = None

    def dtype_name(self) -> str | None:
        """Name of the dtype, for example "float32"; None when the variable has none."""
        return None if self.dtype is None else DTYPE_NAMES.get(self.dtype) or self.dtype.name

    def clone(self) -> VarDesc:
        """An independent copy."""
        var = VarDesc.__new__(VarDesc)
        var.name, var.type, var.dtype, var.shape = self.name, self.type, self.dtype, self.shape
        var.lod_level, var.persistable, var.stop_gradient = self.lod_level, self.persistable, self.stop_gradient
        var.is_parameter, var.need_check_feed = self.is_parameter, self.need_check_feed
        var._explicit, var._extra = self._explicit, self._extra and dict(self._extra)
        return var

    def __str__(self) -> str:
        kind = "" if self.type is VarType.LOD_TENSOR else f" {self.type.name.lower()}"
        dims = "" if self.shape is None else str(list(self.shape))
        flags = [f for f in ("persistable", "is_parameter", "stop_gradient") if getattr(self, f)]
        lod = [f"lod_level={self.lod_level}"] if self.lod_level else []
        return f"{self.name}:{kind} {self.dtype_name() or ''}{dims}" + "".join(f" {f}" for f in lod + flags)

    def __repr__(self) -> str:
        return f"<VarDesc {self}>"
