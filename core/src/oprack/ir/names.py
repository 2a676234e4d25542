"""Names that the ops of whole blocks use, for the graph."""

from __future__ import annotations

from collections.abc import Iterable

from oprack.desc import BlockDesc, ProgramDesc
from oprack.desc.reach import named_by_attributes


def used_by_blocks(blocks: Iterable[BlockDesc]) -> tuple[set[str], set[str]]:
    """Names that the ops of these blocks read (attributes included) and write."""
    read: set[str] = set()
    written: set[str] = set()
    for block in blocks:
        for op in block.ops:
            read.update(op.input_arg_names(), named_by_attributes(op))
            written.update(op.output_arg_names())
    return read, written


def names_of(program: ProgramDesc) -> set[str]:
    """Every name that an op of the program reads or writes."""
    read, written = used_by_blocks(program.blocks)
    return read | written
