"""Checks the block indices of a parsed program: they are in range, and neither parents nor sub-blocks form a cycle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack.errors import BlockCycleError

if TYPE_CHECKING:
    from oprack.desc.program_desc import ProgramDesc


def check_blocks(program: ProgramDesc) -> None:
    """Check that the blocks form trees, in time and memory linear in the number of blocks and ops.

    Raises:
        BlockCycleError: An index is out of range, or a block is its own ancestor or sub-block.
    """
    count = len(program.blocks)
    sub_blocks: list[list[int]] = []
    for position, block in enumerate(program.blocks):
        if block.idx != position:
            raise BlockCycleError(f"block at position {position} says that its idx is {block.idx}; expected {position}")
        # Block 0 alone has no parent; Paddle writes -1 there.
        if not (0 <= block.parent_idx < count or (block.parent_idx == -1 and position == 0)):
            raise BlockCycleError(
                f"block {position}: parent_idx is {block.parent_idx}; expected "
                + ("-1" if position == 0 else f"one of the blocks 0 to {count - 1}")
            )
        if not -1 <= block.forward_block_idx < count:
            raise BlockCycleError(
                f"block {position}: forward_block_idx is {block.forward_block_idx}; expected -1 to {count - 1}"
            )
        sub_blocks.append([])
        for op in block.ops:
            for attr, indices in op.block_attrs().items():
                for index in indices:
                    if not 0 <= index < count:
                        raise BlockCycleError(
                            f"block {position}: attribute {attr!r} of op {op.type} names block {index}; expected one "
                            f"of the blocks 0 to {count - 1}"
                        )
                sub_blocks[-1] += indices
    _check_acyclic([[b.parent_idx] if b.parent_idx >= 0 else [] for b in program.blocks], "parents")
    _check_acyclic(sub_blocks, "sub-blocks")


def _check_acyclic(targets: list[list[int]], relation: str) -> None:
    """Search depth-first for a cycle.

    The stack is explicit because an untrusted file decides how deep the search goes: recursion could overflow.
    """
    unvisited, on_path, done = 0, 1, 2
    state = [unvisited] * len(targets)
    for start in range(len(targets)):
        if state[start] != unvisited:
            continue
        state[start] = on_path
        path = [start]
        pending = [iter(targets[start])]
        while path:
            target = next(pending[-1], None)
            if target is None:
                state[path.pop()] = done
                pending.pop()
            elif state[target] == on_path:
                cycle = [*path[path.index(target) :], target]
                shown = " -> ".join(map(str, cycle if len(cycle) <= 8 else [*cycle[:8], "..."]))
                raise BlockCycleError(f"{relation} of the blocks run in a circle: {shown}; expected a tree of blocks")
            elif state[target] == unvisited:
                state[target] = on_path
                path.append(target)
                pending.append(iter(targets[target]))
