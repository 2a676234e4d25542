"""What of a program is needed to compute some of its variables."""

from __future__ import annotations

from collections.abc import Collection

from oprack.desc import OpDesc, ProgramDesc
from oprack.desc.reach import inner_blocks, named_by_attributes, reads, writes
from oprack.types import AttrType

# Values of the attribute op_role, which are bits
_BACKWARD, _OPTIMIZE, _NOT_SPECIFIED = 1, 2, 4096


def prune(program: ProgramDesc, feeds: Collection[str], targets: Collection[str]) -> None:
    """Remove from block 0 what is not needed to compute `targets` from `feeds`, then the blocks that nothing uses.

    Ops of the backward and optimize roles go in any case. Sub-blocks of ops that stay are left whole and renumbered.
    Neither feed nor fetch ops stay.
    """
    block = program.blocks[0]
    needed = set(targets) - set(feeds)
    kept: list[OpDesc] = []
    for op in reversed(block.ops):
        if op.type in ("feed", "fetch") or _is_training(op):
            continue
        # is_target marks ops that are wanted for what they do and not for what they write
        if op.is_target or not needed.isdisjoint(writes(op, program)):
            kept.append(op)
            # A name that is written stays needed: another op may write it before, in place
            needed.update(set(reads(op, program)).difference(feeds))
    block.ops = kept[::-1]
    _drop_blocks(program)
    used = set(feeds) | set(targets)
    for other in program.blocks:
        for op in other.ops:
            used.update(op.input_arg_names(), op.output_arg_names(), named_by_attributes(op))
    block.vars = {name: var for name, var in block.vars.items() if name in used}


def _is_training(op: OpDesc) -> bool:
    role = op.attr("op_role", 0)
    return isinstance(role, int) and role != _NOT_SPECIFIED and bool(role & (_BACKWARD | _OPTIMIZE))


def _drop_blocks(program: ProgramDesc) -> None:
    """Remove the blocks that no op reaches, and number the others anew."""
    reached = {0} | {block.idx for op in program.blocks[0].ops for block in inner_blocks(op, program)}
    # Names are looked up in parents and forward blocks, so these stay although nothing runs them.
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
