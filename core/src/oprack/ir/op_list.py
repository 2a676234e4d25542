"""The ops of a graph in an order in which they can run, while ops are inserted and removed."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.ir.nodes import OpNode


class OpList:
    """Ops in order. Insertions and removals are noted, and applied together when the list is asked for.

    A pass rewrites many places and asks for the order seldom, so each change costs the same however long the list is.
    """

    def __init__(self) -> None:
        self._ops: list[OpNode] = []
        self._removed: set[OpNode] = set()
        self._inserted: dict[OpNode, list[OpNode]] = {}

    def append(self, op: OpNode) -> None:
        """Add the last op of a block that is read; nothing may have been inserted or removed yet."""
        self._ops.append(op)

    def insert(self, op: OpNode, before: OpNode | None) -> None:
        """Add an op before another one, or last when `before` is None."""
        if before is None:
            self._ops = [*self.in_order(), op]
        else:
            self._inserted.setdefault(before, []).append(op)

    def remove(self, op: OpNode) -> None:
        """Take an op out."""
        self._removed.add(op)

    def in_order(self) -> list[OpNode]:
        """The ops, as a list of the caller's own."""
        if self._removed or self._inserted:
            ops: list[OpNode] = []
            # A stack and no recursion: passes may insert before inserted ops as often as they like.
            waiting = [(op, False) for op in reversed(self._ops)]
            while waiting:
                op, ready = waiting.pop()
                # ops may be inserted before an op that was inserted, or removed, itself
                before = [] if ready else self._inserted.pop(op, [])
                if before:
                    waiting += [(op, True), *((new, False) for new in reversed(before))]
                elif op not in self._removed:
                    ops.append(op)
            self._ops, self._removed = ops, set()
        return self._ops.copy()

    def reorder(self, ops: Sequence[OpNode]) -> None:
        """Replace the order by another one of the same ops."""
        self._ops = list(ops)
