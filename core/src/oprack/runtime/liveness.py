"""Walks over a program before it runs: how deep its blocks are nested, and where each local variable is used last."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from oprack.desc.reach import named_by_attributes, read_inside, reads, written_inside
from oprack.errors import BlockCycleError, BlockDepthError
from oprack.program import DEEPEST
from oprack.python.records import dataclass

if TYPE_CHECKING:
    from oprack.desc import BlockDesc, OpDesc, ProgramDesc
    from oprack.runtime.operator import OperatorBase


def check_nesting(program: ProgramDesc) -> None:
    """Raise BlockCycleError when a block runs itself, BlockDepthError when blocks are nested too deep."""
    count = len(program.blocks)
    if count == 1 and not any(True for op in program.blocks[0].ops for _ in op.sub_blocks()):
        return
    inner = [{i for op in block.ops for i in op.sub_blocks() if 0 <= i < count} for block in program.blocks]
    depth = _depths(inner)
    circle = [i for i, d in enumerate(depth) if d is None][:8]
    if circle:
        raise BlockCycleError(
            f"sub-blocks of the blocks {', '.join(map(str, circle))} run in a circle; expected a tree"
        )
    deepest = max(d for d in depth if d is not None)
    if deepest > DEEPEST:
        raise BlockDepthError(
            f"the program's blocks are nested {deepest} deep; expected at most {DEEPEST}: flatten its loops and "
            "conditions"
        )


def _depths(inner: Sequence[Collection[int]]) -> list[int | None]:
    """How deep each block is nested, from the blocks that each one runs; None where they run in a circle.

    The order is topological and not by recursion, since a program may be nested deeper than Python's stack.
    """
    waiting = [0] * len(inner)  # blocks that run this one, and are not placed yet
    for indices in inner:
        for i in indices:
            waiting[i] += 1
    depth = [1] * len(inner)
    ready = [i for i, count in enumerate(waiting) if not count]
    for block in ready:  # grows: a block is placed after all that run it
        for i in inner[block]:
            depth[i] = max(depth[i], depth[block] + 1)
            waiting[i] -= 1
            if not waiting[i]:
                ready.append(i)
    placed = set(ready)
    return [d if i in placed else None for i, d in enumerate(depth)]


def _last_named(operators: Sequence[OperatorBase], block: BlockDesc, keep: Collection[str]) -> list[list[str]]:
    """For each op, the variables of the block's run that it is the last to name, without those in `keep`."""
    last: dict[str, int] = {}
    for i, op in enumerate(operators):
        last.update(dict.fromkeys((*_inputs(op), *_outputs(op), *named_by_attributes(op.desc)), i))
    dying: list[list[str]] = [[] for _ in operators]
    for name, i in last.items():
        if name not in keep and not _is_outer(name, block):
            dying[i].append(name)
    return dying


def _inputs(op: OperatorBase) -> list[str]:
    return [n for names in op.inputs.values() for n in names]


def _outputs(op: OperatorBase) -> list[str]:
    return [n for names in op.outputs.values() for n in names]


def _is_outer(name: str, block: BlockDesc) -> bool:
    """Whether a variable lives in a scope above that of a run of the block."""
    return name not in block.vars or block.vars[name].persistable


@dataclass
class Dying:
    """What an op is the last to need.

    Attributes:
        values: Variables that nothing reads or writes afterwards.
        buffers: Variables of which only the shape is read afterwards.
    """

    values: list[str]
    buffers: list[str] = field(default_factory=list)


def last_uses(operators: Sequence[OperatorBase], block: BlockDesc, keep: Collection[str]) -> list[Dying]:
    """Find the variables that no later op of a block needs, so that their values can be freed.

    Variables that a sub-block names are kept, since sub-blocks reach outer variables by name, and so are persistable
    ones.

    Args:
        operators: The operators of the block that run.
        block: The block.
        keep: Variables to leave alone, for example those that are fetched.

    Returns:
        For each op, what it is the last to need.
    """
    program = block.program
    inside = (n for op in operators for n in (*read_inside(op.desc, program), *written_inside(op.desc, program)))
    dying = [Dying(names) for names in _last_named(operators, block, {*keep, *inside})]
    last_read: dict[str, int] = {}
    for i, op in enumerate(operators):
        unread = op.info.no_need_buffer_vars
        read = (n for slot, names in op.inputs.items() if slot not in unread for n in names)
        last_read.update(dict.fromkeys((*read, *_outputs(op), *named_by_attributes(op.desc)), i))
    for i, found in enumerate(dying):
        for name in found.values:
            if last_read.get(name, i) < i:
                dying[last_read[name]].buffers.append(name)
    return dying


def read_after(ops: Sequence[OpDesc], program: ProgramDesc) -> set[str]:
    """Variables that have to be there when ops run: what they read, and what their blocks write."""
    return {name for op in ops for name in (*reads(op, program), *written_inside(op, program))}


@dataclass(frozen=True)
class SegmentVariables:
    """Variables of a segment: ops in a row that only run kernels.

    Attributes:
        parameters: Persistable variables that are read before the segment writes them.
        reads: Other variables that are read before the segment writes them.
        keep: Variables that are written here and read afterwards.
        outer: Variables that are written here and belong to a scope above.
        consumed: Those of `reads` that are not read afterwards.
        dying: For each op, the variables that it is the last to name and that are not read afterwards.
    """

    parameters: list[str]
    reads: list[str]
    keep: Collection[str]
    outer: Collection[str]
    consumed: list[str]
    dying: list[list[str]]


def segment_variables(
    operators: Sequence[OperatorBase], block: BlockDesc, keep: Collection[str] | None
) -> SegmentVariables:
    """What a segment reads, writes and frees; `keep` names the variables that are read after it, None all of them."""
    written: set[str] = set()
    read_first: dict[str, None] = {}
    for op in operators:
        read_first.update(dict.fromkeys(n for n in _inputs(op) if n not in written))
        written.update(_outputs(op))
    dying = [[] for _ in operators] if keep is None else _last_named(operators, block, keep)
    dead = {n for names in dying for n in names}
    persistable = {n for n in read_first if (v := block.find_var_recursive(n)) is not None and v.persistable}
    return SegmentVariables(
        parameters=[n for n in read_first if n in persistable],
        reads=[n for n in read_first if n not in persistable],
        keep=written - dead,
        outer={n for n in written if _is_outer(n, block)},
        consumed=[n for n in read_first if n in dead],
        dying=dying,
    )
