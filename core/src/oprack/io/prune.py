"""What of a program is needed to compute some of its variables."""

from __future__ import annotations

from collections.abc import Collection

from oprack.desc import BlockDesc, OpDesc, ProgramDesc
from oprack.types import AttrType

# Values of the attribute op_role, which are bits
_BACKWARD, _OPTIMIZE, _NOT_SPECIFIED = 1, 2, 4096


def prune(program: ProgramDesc, feeds: Collection[str], targets: Collection[str]) -> None:
    """Remove from block 0 what is not needed to compute `targets` from `feeds`, then the blocks that nothing uses.

    Ops of the backward and optimize roles go in any case. Sub-blocks of ops that stay are kept whole and renumbered.
    Neither feed nor fetch ops stay.
    """
    block = program.blocks[0]
    needed = set(targets) - set(feeds)
    kept: list[OpDesc] = []
    for op in reversed(block.ops):
        if op.type in ("feed", "fetch") or _is_training(op):
            continue
        reads, writes = _effects(program, op)
        if op.is_target or not needed.isdisjoint(writes):
            kept.append(op)
            # A name that is written stays needed: another op may write it before, in place
            needed.update(reads.difference(feeds))
    block.ops = kept[::-1]
    _drop_blocks(program)
    used = set(feeds) | set(targets)
    for other in program.blocks:
        for op in other.ops:
            used.update(op.input_arg_names(), op.output_arg_names(), _named_vars(op))
    block.vars = {name: var for name, var in block.vars.items() if name in used}


def _is_training(op: OpDesc) -> bool:
    role = op.attr("op_role", 0)
    return isinstance(role, int) and role != _NOT_SPECIFIED and bool(role & (_BACKWARD | _OPTIMIZE))


def _named_vars(op: OpDesc) -> set[str]:
    """Variables that attributes name."""
    names: set[str] = set()
    for name, kind in op.attr_types.items():
        if kind is AttrType.VAR:
            names.add(op.attrs[name])
        elif kind is AttrType.VARS:
            names.update(op.attrs[name])
    return names


def _effects(program: ProgramDesc, op: OpDesc) -> tuple[set[str], set[str]]:
    """Names that an op and the ops in its sub-blocks read and write."""
    reads: set[str] = set()
    writes: set[str] = set()
    for one in [op, *(inner for block in _blocks_inside(program, op) for inner in block.ops)]:
        reads.update(one.input_arg_names(), _named_vars(one))
        writes.update(one.output_arg_names())
    return reads, writes


def _blocks_inside(program: ProgramDesc, op: OpDesc) -> list[BlockDesc]:
    """Sub-blocks of an op and theirs, each once."""
    found: dict[int, None] = {}
    waiting = list(op.sub_blocks())
    while waiting:
        index = waiting.pop()
        if index not in found:
            found[index] = None
            waiting += [i for inner in program.blocks[index].ops for i in inner.sub_blocks()]
    return [program.blocks[i] for i in found]


def _drop_blocks(program: ProgramDesc) -> None:
    """Remove the blocks that no op reaches, and number the others anew."""
    reached = {0} | {block.idx for op in program.blocks[0].ops for block in _blocks_inside(program, op)}
    for index in list(reached):
        reached.update(block.idx for block in program.blocks[index].ancestors())
    program.blocks = [program.blocks[i] for i in sorted(reached)]
    new = {block.idx: i for i, block in enumerate(program.blocks)}
    for block in program.blocks:
        block.idx = new[block.idx]
        block.parent_idx = new.get(block.parent_idx, -1)
        block.forward_block_idx = new.get(block.forward_block_idx, -1)
        for op in block.ops:
            for name, indices in op.block_attrs().items():
                renumbered = [new[i] for i in indices]
                op.attrs[name] = renumbered[0] if op.attr_types[name] is AttrType.BLOCK else renumbered
