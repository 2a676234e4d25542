"""Building sub-blocks: entering and leaving them, and what they read and write of the blocks around."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from oprack import Program
from oprack.desc import BlockDesc


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
    parent = block.parent
    reads: dict[str, None] = {}
    writes: dict[str, None] = {}
    for op in block.ops:
        for names, found in ((op.input_arg_names(), reads), (op.output_arg_names(), writes)):
            for name in names:
                if not block.has_var(name) and parent is not None and parent.find_var_recursive(name) is not None:
                    found[name] = None
    return list(reads), list(writes)
