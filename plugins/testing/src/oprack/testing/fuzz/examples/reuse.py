"""Names used again: what memory-optimised programs of Fluid 1.x do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oprack.desc import BlockDesc
from oprack.program import Program
from oprack.types import VarType


def reuse_names(program: Program, keep: set[str], choose: Callable[..., Any]) -> None:
    """Give variables of block 0 names whose values are not read any more, whatever dims they had.

    keep: names that stay. choose: one of its arguments, which are what a variable may be called.
    """
    if len(program.blocks) > 1:
        return
    block = program.global_block()
    renamed = _new_names(block, keep, choose)
    for op in block.ops:
        for slots in (op.inputs, op.outputs):
            for names in slots.values():
                names[:] = [renamed.get(n, n) for n in names]
        op.edits += 1
    for name, new in renamed.items():
        if new != name:
            block.remove_var(name)


def _new_names(block: BlockDesc, keep: set[str], choose: Callable[..., Any]) -> dict[str, str]:
    """For each dense local variable, in the order of first writes, its own name or one that is free by then."""
    last = {n: i for i, op in enumerate(block.ops) for n in (*op.input_arg_names(), *op.output_arg_names())}
    first: dict[str, int] = {}
    for i, op in enumerate(block.ops):
        for n in op.output_arg_names():
            first.setdefault(n, i)
    free_from: dict[str, int] = {}
    renamed: dict[str, str] = {}
    for name in sorted(first, key=lambda n: first[n]):
        var = block.vars.get(name)
        if var is None or var.persistable or var.type is not VarType.LOD_TENSOR:
            continue
        dead = [n for n, end in free_from.items() if end < first[name] and block.vars[n].dtype == var.dtype]
        new = name if name in keep else choose(name, *dead)
        renamed[name] = new
        free_from.pop(new, None)
        if name not in keep:
            free_from[new] = last[name]
    return renamed
