"""Names of variables that an op reaches without a slot: through its sub-blocks and through its attributes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from oprack.desc import BlockDesc, OpDesc, ProgramDesc

_NOTES = frozenset({"op_callstack", "op_namescope", "op_device", "op_role_var"})


def named_by_attributes(desc: OpDesc) -> Iterator[str]:
    """Strings of an op's attributes, each of which may be the name of a variable."""
    for name, value in desc.attrs.items():
        if name in _NOTES:
            continue
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            yield from (v for v in value if isinstance(v, str))


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


def blocks_inside(program: ProgramDesc, desc: OpDesc) -> list[BlockDesc]:
    """The sub-blocks of an op and theirs, in the order of the program."""
    found: set[int] = set()
    waiting = list(desc.sub_blocks())
    while waiting:
        index = waiting.pop()
        if index not in found:
            found.add(index)
            waiting += [i for op in program.blocks[index].ops for i in op.sub_blocks()]
    return [program.blocks[i] for i in sorted(found)]
