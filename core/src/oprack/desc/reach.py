"""Which variables and blocks an op uses, by its slots, by its attributes, and by the blocks that it runs.

Attributes of the types VAR and VARS name variables that the op reads. STRING and STRINGS are text, except in an op that
runs a block: there they say under which names the block knows a value (the states of a recurrent block, the gradients
that a gradient block starts from). What the framework notes about an op (`op_callstack`, `op_role_var` ...) is never
read by the op.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from oprack.types import EMPTY_VAR, AttrType

if TYPE_CHECKING:
    from oprack.desc.op_desc import OpDesc
    from oprack.desc.program_desc import BlockDesc, ProgramDesc

_VAR_AND_BLOCK_TYPES = frozenset({AttrType.VAR, AttrType.VARS, AttrType.BLOCK, AttrType.BLOCKS})
_TEXT_TYPES = (AttrType.STRING, AttrType.STRINGS)
_FRAMEWORK_ATTRS = frozenset({"op_callstack", "op_namescope", "op_device", "op_role_var", "skip_eager_deletion_vars"})


def inner_blocks(op: OpDesc, program: ProgramDesc) -> list[BlockDesc]:
    """The blocks that an op runs, with the blocks inside them, each once and in the order of the program."""
    if not op.block_attrs():
        return []
    visited: set[int] = set()
    pending = list(op.sub_blocks())
    while pending:
        index = pending.pop()
        if index not in visited:
            visited.add(index)
            pending += [i for inner in program.blocks[index].ops for i in inner.sub_blocks()]
    return [program.blocks[i] for i in sorted(visited)]


def named_by_attributes(op: OpDesc) -> list[str]:
    """Names of variables in the attributes of an op, each once; those that its blocks declare are among them."""
    if _VAR_AND_BLOCK_TYPES.isdisjoint(op.attr_types.values()):
        return []
    names = dict.fromkeys(n for listed in op.var_attrs().values() for n in listed)
    if op.block_attrs():
        for attr, type in op.attr_types.items():
            if type in _TEXT_TYPES and attr not in _FRAMEWORK_ATTRS:
                value = op.attrs[attr]
                names.update(dict.fromkeys([value] if isinstance(value, str) else value))
    return list(names)


Unread = Callable[["OpDesc"], Collection[str]]
"""Gives the input slots of an op whose values it does not read."""


def reads(op: OpDesc, program: ProgramDesc, unread: Unread = lambda op: ()) -> list[str]:
    """Variables that an op reads: by its input slots, by its attributes, and by the ops of its blocks.

    Args:
        op: An op of any block of `program`.
        program: Holds the blocks that attributes give by number.
        unread: The input slots of an op to leave out, because only the shape of what they hold is read.

    Returns:
        Names, each once. What a block of the op declares for itself is left out, unless it is persistable.
    """
    return _unique([*_read_by(op, program, unread), *read_inside(op, program, unread)])


def writes(op: OpDesc, program: ProgramDesc) -> list[str]:
    """Variables that an op writes, by its output slots and by the ops of its blocks; else as `reads`."""
    return _unique([*op.output_arg_names(), *written_inside(op, program)])


def read_inside(op: OpDesc, program: ProgramDesc, unread: Unread = lambda op: ()) -> list[str]:
    """Variables that the ops of an op's blocks read and that belong to the blocks around it; else as `reads`."""
    return _outer_names(op, program, lambda inner_op: _read_by(inner_op, program, unread))


def written_inside(op: OpDesc, program: ProgramDesc) -> list[str]:
    """Variables that the ops of an op's blocks write and that belong to the blocks around it; else as `reads`."""
    return _outer_names(op, program, lambda inner_op: inner_op.output_arg_names())


def names_outside(block: BlockDesc) -> tuple[list[str], list[str]]:
    """What the slots of a block's ops name of the blocks around it: what is read, and what is written, in order."""
    read = dict.fromkeys(n for op in block.ops for n in op.input_arg_names() if n not in block.vars)
    written = dict.fromkeys(n for op in block.ops for n in op.output_arg_names() if n not in block.vars)
    return list(read), list(written)


def _read_by(op: OpDesc, program: ProgramDesc, unread: Unread) -> Iterator[str]:
    skipped = unread(op)
    yield from (n for slot, names in op.inputs.items() if slot not in skipped for n in names)
    # A text attribute that names a variable of the op's own block means that one.
    own = {n for index in op.sub_blocks() for n in program.blocks[index].vars}
    yield from (n for n in named_by_attributes(op) if n not in own)


def _outer_names(op: OpDesc, program: ProgramDesc, names_of: Callable[[OpDesc], Iterable[str]]) -> list[str]:
    """`names_of` all ops in the blocks of `op`, without variables that these blocks declare."""
    inner = {block.idx: block for block in inner_blocks(op, program)}
    if not inner:
        return []
    outer: list[str] = []
    for block in inner.values():
        # A nested block sees the variables of the blocks around it. What none of those inside the op declares comes
        # from outside of the op.
        scopes = [b for b in block.ancestors() if b.idx in inner]
        own = {v.name for b in scopes for v in b.vars.values() if not v.persistable}
        outer += (n for inner_op in block.ops for n in names_of(inner_op) if n not in own)
    return _unique(outer)


def _unique(names: Iterable[str]) -> list[str]:
    """Names in order, each once, without that of absent variables."""
    return [n for n in dict.fromkeys(names) if n != EMPTY_VAR]
