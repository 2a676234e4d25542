"""The ops of a graph in execution order, with cheap insertion and removal."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.ir.nodes import OpNode


class OpList:
    """Ops in execution order. Insertions and removals are queued, and applied together by `in_order`.

    A pass changes many places and reads the order rarely, so each change takes constant time.
    """

    def __init__(self) -> None:
        self._ops: list[OpNode] = []
        self._removed: set[OpNode] = set()
        self._inserted: dict[OpNode, list[OpNode]] = {}

    def append(self, op: OpNode) -> None:
        """Add the next op of a block while the graph is built; nothing may have been inserted or removed yet."""
        self._ops.append(op)

    def insert(self, op: OpNode, before: OpNode | None) -> None:
        """Add an op before another one, or last when `before` is None."""
        if before is None:
            self._ops = [*self.in_order(), op]
        else:
            self._inserted.setdefault(before, []).append(op)

    def remove(self, op: OpNode) -> None:
        """Remove an op."""
        self._removed.add(op)

    def in_order(self) -> list[OpNode]:
        """The ops in order, as a new list."""
        if self._removed or self._inserted:
            ops: list[OpNode] = []
            # A stack instead of recursion, as passes may insert before inserted ops to any depth.
            pending = [(op, False) for op in reversed(self._ops)]
            while pending:
                op, ready = pending.pop()
                # Ops may have been inserted before an op that was itself inserted, or removed.
                before = [] if ready else self._inserted.pop(op, [])
                if before:
                    pending += [(op, True), *((new, False) for new in reversed(before))]
                elif op not in self._removed:
                    ops.append(op)
            self._ops, self._removed = ops, set()
        return self._ops.copy()

    def reorder(self, ops: Sequence[OpNode]) -> None:
        """Replace the order by another one of the same ops."""
        self._ops = list(ops)
