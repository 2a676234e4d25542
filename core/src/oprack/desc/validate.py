"""Block indices of a parsed program: in range, and neither parents nor sub-blocks run in circles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack.errors import BlockCycleError

if TYPE_CHECKING:
    from oprack.desc.program_desc import ProgramDesc


def check_blocks(program: ProgramDesc) -> None:
    """Check that blocks form trees. It takes time and memory linear in the number of blocks and ops.

    Raises:
        BlockCycleError: An index points nowhere, or a block is its own ancestor or sub-block.
    """
    count = len(program.blocks)
    subs: list[list[int]] = []
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
        subs.append([])
        for op in block.ops:
            for attr, indices in op.block_attrs().items():
                for index in indices:
                    if not 0 <= index < count:
                        raise BlockCycleError(
                            f"block {position}: attribute {attr!r} of op {op.type} names block {index}; expected one "
                            f"of the blocks 0 to {count - 1}"
                        )
                subs[-1] += indices
    _refuse_cycle([[b.parent_idx] if b.parent_idx >= 0 else [] for b in program.blocks], "parents")
    _refuse_cycle(subs, "sub-blocks")


def _refuse_cycle(targets: list[list[int]], what: str) -> None:
    """Depth-first search with a stack of its own: a file decides how deep it goes."""
    fresh, open_, done = 0, 1, 2
    state = [fresh] * len(targets)
    for start in range(len(targets)):
        if state[start] != fresh:
            continue
        state[start] = open_
        path = [start]
        rest = [iter(targets[start])]
        while path:
            step = next(rest[-1], None)
            if step is None:
                state[path.pop()] = done
                rest.pop()
            elif state[step] == open_:
                cycle = [*path[path.index(step) :], step]
                shown = " -> ".join(map(str, cycle if len(cycle) <= 8 else [*cycle[:8], "..."]))
                raise BlockCycleError(f"{what} of the blocks run in a circle: {shown}; expected a tree of blocks")
            elif state[step] == fresh:
                state[step] = open_
                path.append(step)
                rest.append(iter(targets[step]))
