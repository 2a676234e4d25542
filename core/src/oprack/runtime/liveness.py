"""Liveness: after which op of a block each of its local variables is not needed any more."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oprack.desc import BlockDesc


def last_uses(block: BlockDesc, keep: Collection[str] = ()) -> list[list[str]]:
    """Per op of the block: local variables that no later op reads or writes, so that their values can be dropped.

    keep: variables to leave alone, for example those that are fetched. Variables that a sub-block names are kept, since
    sub-blocks reach outer variables by name; so are persistable ones.
    """
    reachable: set[str] = set(keep)
    pending = [i for op in block.ops for i in op.sub_blocks()]
    seen: set[int] = set()
    while pending:
        index = pending.pop()
        if index in seen:
            continue
        seen.add(index)
        for op in block.program.blocks[index].ops:
            reachable.update(op.input_arg_names(), op.output_arg_names())
            pending += op.sub_blocks()
    last: dict[str, int] = {}
    for i, op in enumerate(block.ops):
        # an attribute may name variables as well (support_tensor)
        named = [
            n for v in op.attrs.values() for n in ([v] if isinstance(v, str) else v if isinstance(v, list) else ())
        ]
        for name in (*op.input_arg_names(), *op.output_arg_names(), *named):
            if isinstance(name, str) and name in block.vars:
                last[name] = i
    dying: list[list[str]] = [[] for _ in block.ops]
    for name, i in last.items():
        if name not in reachable and not block.vars[name].persistable:
            dying[i].append(name)
    return dying
