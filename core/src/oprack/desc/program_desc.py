"""ProgramDesc: the blocks of a program, and the versions of the ops that it was saved with."""

from __future__ import annotations

from typing import Any, Self

from oprack.desc.block_desc import BlockDesc
from oprack.errors import NotFoundError


class ProgramDesc:
    """The blocks of a program and the versions it was saved with.

    A new program has one empty block.

    Attributes:
        blocks: Blocks by index; a run starts in block 0.
        version: Version of the framework that saved the program, for example 2006002 for 2.6.2; 0 when the file does
            not say (Fluid before 1.3).
        op_version_map: Op type -> version of the op's definition when the program was saved.
    """

    __slots__ = ("_explicit", "_extra", "blocks", "op_version_map", "version")

    def __init__(self) -> None:
        self.blocks = [BlockDesc(self, 0)]
        self.version = 0
        self.op_version_map: dict[str, int] = {}
        self._explicit = 0
        self._extra: dict[tuple[Any, ...], bytes] | None = None

    @classmethod
    def parse(cls, data: bytes | bytearray | memoryview) -> Self:
        """Parse the contents of a `.pdmodel` or `__model__` file.

        Raises:
            CorruptModelError: When the bytes are not a serialized program.
            BlockCycleError: When blocks contain each other or a block index is out of range.
        """
        from oprack.desc.validate import check_blocks
        from oprack.desc.wire_reader import read_program

        program = cls()
        read_program(data, program)
        check_blocks(program)
        return program

    def serialize(self) -> bytes:
        """Serialize to the bytes of a `.pdmodel` file; fields that `parse` did not know are written back unchanged.

        Raises:
            AttributeValueError: When an attribute's value does not have the attribute's type.
        """
        from oprack.desc.wire_writer import write_program

        return write_program(self)

    def block(self, index: int) -> BlockDesc:
        """Return the block of an index.

        Raises:
            NotFoundError: When the program has no such block.
        """
        if not 0 <= index < len(self.blocks):
            raise NotFoundError(f"block {index} does not exist; the program has blocks 0 to {len(self.blocks) - 1}")
        return self.blocks[index]

    def append_block(self, parent: BlockDesc, forward_block: BlockDesc | None = None) -> BlockDesc:
        """Append a new, empty block.

        Args:
            parent: The block that contains it.
            forward_block: The block whose gradient it computes; None for a block that computes no gradient.
        """
        block = BlockDesc(self, len(self.blocks), parent.idx, -1 if forward_block is None else forward_block.idx)
        self.blocks.append(block)
        return block

    def clone(self) -> Self:
        """An independent copy."""
        program = type(self)()
        program.blocks = [block.clone(program) for block in self.blocks]
        program.version = self.version
        program.op_version_map = dict(self.op_version_map)
        program._explicit = self._explicit
        program._extra = self._extra and dict(self._extra)
        return program

    def __str__(self) -> str:
        return "\n".join(str(block) for block in self.blocks)

    def __repr__(self) -> str:
        return f"<ProgramDesc: {len(self.blocks)} blocks, {sum(len(b.ops) for b in self.blocks)} ops>"
