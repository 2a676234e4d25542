"""Building sub-blocks: entering and leaving them, and what they read and write of the blocks around."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from oprack import Program
from oprack.desc import BlockDesc
from oprack.desc.reach import reads, writes


@contextmanager
def sub_block(program: Program) -> Iterator[BlockDesc]:
    """Ops go to a new block inside the current one; when building it fails, the block is gone again."""
    block = program.create_block()
    try:
        yield block
    except BaseException:
        program.rollback()
        del program.desc.blocks[block.idx :]
        raise
    program.rollback()


@contextmanager
def inside(program: Program, block: BlockDesc) -> Iterator[None]:
    """Ops go to `block`, an outer one, for a while."""
    before, program.current_block_idx = program.current_block_idx, block.idx
    try:
        yield
    finally:
        program.current_block_idx = before


def outer_names(block: BlockDesc) -> tuple[list[str], list[str]]:
    """Variables of outer blocks that the ops of a block read, and those that they write, in order."""
    parent, program = block.parent, block.program

    def outer(names: Iterable[str]) -> list[str]:
        found = (n for n in dict.fromkeys(names) if not block.has_var(n))
        return [n for n in found if parent is not None and parent.find_var_recursive(n) is not None]

    return outer(n for op in block.ops for n in reads(op, program)), outer(
        n for op in block.ops for n in writes(op, program)
    )
