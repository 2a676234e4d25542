"""Program: a ProgramDesc with the everyday questions about it."""

from __future__ import annotations

from typing import Self

from oprack.desc import BlockDesc, ProgramDesc, VarDesc


class Program:
    """A program. `Program()` has one empty block; `Program.parse(data)` reads a `.pdmodel` or `__model__` file's bytes.

    desc: the ProgramDesc, which may be changed freely; the Program keeps nothing beside it.
    """

    __slots__ = ("__weakref__", "desc")

    def __init__(self, desc: ProgramDesc | None = None) -> None:
        self.desc = ProgramDesc() if desc is None else desc

    @classmethod
    def parse(cls, data: bytes | bytearray | memoryview) -> Self:
        """Raises CorruptModelError for bytes that are no program, BlockCycleError for blocks that can't be walked."""
        return cls(ProgramDesc.parse(data))

    def serialize(self) -> bytes:
        """The bytes of a `.pdmodel` file."""
        return self.desc.serialize()

    @property
    def blocks(self) -> list[BlockDesc]:
        return self.desc.blocks

    def block(self, index: int) -> BlockDesc:
        """Block by index. Raises NotFoundError when there is none."""
        return self.desc.block(index)

    def global_block(self) -> BlockDesc:
        """Block 0, where the program starts."""
        return self.desc.blocks[0]

    def list_vars(self) -> list[VarDesc]:
        """All variables, block by block."""
        return [var for block in self.desc.blocks for var in block.vars.values()]

    def op_types(self) -> set[str]:
        """Types of all ops, those in sub-blocks included."""
        return {op.type for block in self.desc.blocks for op in block.ops}

    def clone(self) -> Self:
        """An independent copy."""
        return type(self)(self.desc.clone())

    def __str__(self) -> str:
        return str(self.desc)

    def __repr__(self) -> str:
        return f"<Program: {len(self.desc.blocks)} blocks, {sum(len(b.ops) for b in self.desc.blocks)} ops>"
