"""VarDesc: one variable of a block: what it holds, its dtype, dims and flags."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oprack.types import DTYPE_NAMES, VarType, dtype_enum


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
        self.type = VarType(type)
        self.dtype = None if dtype is None else dtype_enum(dtype)
        self.shape = None if shape is None else tuple(int(d) for d in shape)
        self.lod_level = lod_level
        self.persistable = persistable
        self.stop_gradient = stop_gradient
        self.is_parameter = is_parameter
        self.need_check_feed = need_check_feed
        self._explicit = 0
        self._extra: dict[tuple[Any, ...], bytes] | None = None

    def dtype_name(self) -> str | None:
        """Name of the dtype, for example "float32"; None when the variable has none."""
        return None if self.dtype is None else DTYPE_NAMES.get(self.dtype, self.dtype.name)

    def clone(self) -> VarDesc:
        """An independent copy."""
        var = VarDesc.__new__(VarDesc)
        for slot in VarDesc.__slots__:
            setattr(var, slot, getattr(self, slot))
        var._extra = self._extra and dict(self._extra)
        return var

    def __str__(self) -> str:
        kind = "" if self.type is VarType.LOD_TENSOR else f" {self.type.name.lower()}"
        dims = "" if self.shape is None else str(list(self.shape))
        flags = [f for f in ("persistable", "is_parameter", "stop_gradient") if getattr(self, f)]
        lod = [f"lod_level={self.lod_level}"] if self.lod_level else []
        return f"{self.name}:{kind} {self.dtype_name() or ''}{dims}" + "".join(f" {f}" for f in lod + flags)

    def __repr__(self) -> str:
        return f"<VarDesc {self}>"
