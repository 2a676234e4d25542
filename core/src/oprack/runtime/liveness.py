"""Walks over a program before it runs: how deep its blocks are nested, and where each local variable is used last."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from oprack.desc.reach import named_by_attributes, read_inside, reads, written_inside
from oprack.errors import BlockCycleError, BlockDepthError
from oprack.program import DEEPEST
from oprack.records import dataclass

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


@dataclass
class Dying:
    """What an op is the last to need.

    Attributes:
        values: Variables that nothing reads or writes afterwards.
        buffers: Variables of which only the shape is read afterwards.
    """

    values: list[str] = field(default_factory=list)
    buffers: list[str] = field(default_factory=list)


def last_uses(
    block: BlockDesc, ops: Sequence[OpDesc], keep: Collection[str], unread: Sequence[Collection[str]]
) -> list[Dying]:
    """Find the local variables that no later op reads or writes, so that their values can be freed.

    Variables that a sub-block names are kept, since sub-blocks reach outer variables by name, and so are persistable
    ones.

    Args:
        block: The block.
        ops: The ops of the block that run.
        keep: Variables to leave alone, for example those that are fetched.
        unread: For each op, the input slots of which only the shape is read.

    Returns:
        For each op, what it is the last to need.
    """
    program = block.program
    reachable: set[str] = set(keep)
    last: dict[str, int] = {}
    last_read: dict[str, int] = {}
    for i, op in enumerate(ops):
        named = named_by_attributes(op)
        for name in (*op.input_arg_names(), *op.output_arg_names(), *named):
            if name in block.vars:
                last[name] = i
        read = (n for slot, names in op.inputs.items() if slot not in unread[i] for n in names)
        last_read.update(dict.fromkeys((*read, *op.output_arg_names(), *named), i))
        reachable.update(read_inside(op, program), written_inside(op, program))
    dying = [Dying() for _ in ops]
    for name, i in last.items():
        if name not in reachable and not block.vars[name].persistable:
            dying[i].values.append(name)
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
        consumed: Those of `reads` and `parameters` that are not read afterwards.
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
    written, read_first, last = _uses(operators)
    outer = {n for n in written if _is_outer(n, block)}
    kept = written if keep is None else written.intersection(keep) | outer
    dead = [n for n in written if n not in kept]
    if keep is not None:
        # what comes in from this run's own scope and is read here for the last time goes, too
        dead += sorted(n for n in read_first if not (n in keep or n in written or _is_outer(n, block)))
    parameters, reads = _parted(read_first, block)
    return SegmentVariables(
        parameters=parameters,
        reads=reads,
        keep=kept,
        outer=outer,
        consumed=[n for n in dead if n in read_first],
        dying=_by_last_op(dead, last, len(operators)),
    )


def _by_last_op(names: Sequence[str], last: Mapping[str, int], count: int) -> list[list[str]]:
    dying: list[list[str]] = [[] for _ in range(count)]
    for n in names:
        dying[last[n]].append(n)
    return dying


def _parted(names: Collection[str], block: BlockDesc) -> tuple[list[str], list[str]]:
    """(persistable variables, the others)."""
    persistable = {n for n in names if (v := block.find_var_recursive(n)) is not None and v.persistable}
    return [n for n in names if n in persistable], [n for n in names if n not in persistable]


def _uses(operators: Sequence[OperatorBase]) -> tuple[set[str], dict[str, None], dict[str, int]]:
    """(variables that ops write, those that they read before, the number of the last op that names each)."""
    written: set[str] = set()
    read_first: dict[str, None] = {}
    last: dict[str, int] = {}
    for i, op in enumerate(operators):
        ins = [n for names in op.inputs.values() for n in names]
        outs = [n for names in op.outputs.values() for n in names]
        read_first.update(dict.fromkeys(n for n in ins if n not in written))
        written.update(outs)
        last.update(dict.fromkeys((*ins, *outs), i))
    return written, read_first, last


def _is_outer(name: str, block: BlockDesc) -> bool:
    """Whether a variable lives in a scope above that of a run of the block."""
    return name not in block.vars or block.vars[name].persistable
