"""What an op reaches besides its slots: the one answer to which variables and blocks an op uses.

An op names variables in three ways: in its slots, in its attributes, and in the ops of the blocks that it runs.
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

_REACHING = frozenset({AttrType.VAR, AttrType.VARS, AttrType.BLOCK, AttrType.BLOCKS})
_TEXTS = (AttrType.STRING, AttrType.STRINGS)
_NOTES = frozenset({"op_callstack", "op_namescope", "op_device", "op_role_var", "skip_eager_deletion_vars"})


def inner_blocks(op: OpDesc, program: ProgramDesc) -> list[BlockDesc]:
    """The blocks that an op runs, with the blocks inside them, each once and in the order of the program."""
    if not op.block_attrs():
        return []
    found: set[int] = set()
    waiting = list(op.sub_blocks())
    while waiting:
        index = waiting.pop()
        if index not in found:
            found.add(index)
            waiting += [i for inner in program.blocks[index].ops for i in inner.sub_blocks()]
    return [program.blocks[i] for i in sorted(found)]


def named_by_attributes(op: OpDesc) -> list[str]:
    """Names of variables in the attributes of an op, each once; those that its blocks declare are among them."""
    if _REACHING.isdisjoint(op.attr_types.values()):
        return []
    found = dict.fromkeys(n for names in op.var_attrs().values() for n in names)
    if op.block_attrs():
        for attr, type in op.attr_types.items():
            if type in _TEXTS and attr not in _NOTES:
                value = op.attrs[attr]
                found.update(dict.fromkeys([value] if isinstance(value, str) else value))
    return list(found)


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
    return _once([*_read_by(op, program, unread), *read_inside(op, program, unread)])


def writes(op: OpDesc, program: ProgramDesc) -> list[str]:
    """Variables that an op writes, by its output slots and by the ops of its blocks; else as `reads`."""
    return _once([*op.output_arg_names(), *written_inside(op, program)])


def read_inside(op: OpDesc, program: ProgramDesc, unread: Unread = lambda op: ()) -> list[str]:
    """Variables that the ops of an op's blocks read and that belong to the blocks around it; else as `reads`."""
    return _outer(op, program, lambda one: _read_by(one, program, unread))


def written_inside(op: OpDesc, program: ProgramDesc) -> list[str]:
    """Variables that the ops of an op's blocks write and that belong to the blocks around it; else as `reads`."""
    return _outer(op, program, lambda one: one.output_arg_names())


def _read_by(op: OpDesc, program: ProgramDesc, unread: Unread) -> Iterator[str]:
    skipped = unread(op)
    yield from (n for slot, names in op.inputs.items() if slot not in skipped for n in names)
    # where the op's own block declares a name, text means the block's variable
    own = {n for index in op.sub_blocks() for n in program.blocks[index].vars}
    yield from (n for n in named_by_attributes(op) if n not in own)


def _outer(op: OpDesc, program: ProgramDesc, names: Callable[[OpDesc], Iterable[str]]) -> list[str]:
    """What `names` gives for the ops inside `op`, without what the blocks inside declare."""
    inner = {block.idx: block for block in inner_blocks(op, program)}
    if not inner:
        return []
    found: list[str] = []
    for block in inner.values():
        # A block inside a block sees the variables of those around it; what none of these declares comes from outside
        # of the op.
        around = [b for b in block.ancestors() if b.idx in inner]
        own = {v.name for b in around for v in b.vars.values() if not v.persistable}
        found += (n for one in block.ops for n in names(one) if n not in own)
    return _once(found)


def _once(names: Iterable[str]) -> list[str]:
    return [n for n in dict.fromkeys(names) if n != EMPTY_VAR]
