"""VariableHandle: a variable of a program that is being built, as data; all it knows is in the VarDesc."""

from __future__ import annotations

from oprack.desc import BlockDesc, VarDesc
from oprack.program import Program
from oprack.types import VarType


class VariableHandle:
    """What ops are appended with. Users get Variables, which can do more."""

    __slots__ = ("__weakref__", "block", "desc", "program")

    def __init__(self, program: Program, block: BlockDesc, desc: VarDesc) -> None:
        self.program, self.block, self.desc = program, block, desc

    @property
    def name(self) -> str:
        return self.desc.name

    @property
    def shape(self) -> tuple[int, ...]:
        """Dims, -1 where each batch decides; () for a 0-D tensor, and when nothing is known."""
        return self.desc.shape or ()

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def dtype(self) -> str | None:
        """Name of the dtype, for example "float32"; None where the kind of variable has none."""
        return self.desc.dtype_name()

    @property
    def lod_level(self) -> int:
        return self.desc.lod_level

    @property
    def type(self) -> VarType:
        """LOD_TENSOR, SELECTED_ROWS, LOD_TENSOR_ARRAY ..."""
        return self.desc.type

    @property
    def persistable(self) -> bool:
        """Whether it lives on after a run, in the scope, and is saved."""
        return self.desc.persistable

    @persistable.setter
    def persistable(self, value: bool) -> None:
        self.desc.persistable = bool(value)

    @property
    def stop_gradient(self) -> bool:
        """Whether no gradient flows through it."""
        return self.desc.stop_gradient

    @stop_gradient.setter
    def stop_gradient(self, value: bool) -> None:
        self.desc.stop_gradient = bool(value)

    @property
    def is_parameter(self) -> bool:
        return self.desc.is_parameter

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.desc} in block {self.block.idx}>"
