"""An order in which the ops of a graph can run, as near as can be to the one that they are in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush

from oprack.errors import GraphError
from oprack.ir.nodes import OpNode, VarNode


def runnable_order(ops: Sequence[OpNode], variables: Iterable[Sequence[VarNode]]) -> list[OpNode]:
    """Sort ops so that each comes after the producers of what it reads, and after all readers of a version that it
    overwrites.

    Args:
        ops: The ops; the result is as near to their order as can be.
        variables: The versions of each variable, in order.

    Raises:
        GraphError: Ops depend on each other in a circle.
    """
    before = _dependencies(ops, variables)
    after: dict[OpNode, list[OpNode]] = {op: [] for op in ops}
    for op, earlier in before.items():
        for e in earlier:
            after[e].append(op)
    position = {op: i for i, op in enumerate(ops)}
    waiting = {op: len(earlier) for op, earlier in before.items()}
    ready = [position[op] for op in ops if not waiting[op]]
    # The op that stood first comes first among those that can run: where nothing forces another order it stays, and
    # memory use with it.
    heapify(ready)
    ordered: list[OpNode] = []
    while ready:
        op = ops[heappop(ready)]
        ordered.append(op)
        for later in after[op]:
            waiting[later] -= 1
            if not waiting[later]:
                heappush(ready, position[later])
    if len(ordered) < len(ops):
        circle = [op for op in ops if waiting[op]][:4]
        raise GraphError(f"ops depend on each other in a circle, among them {', '.join(map(repr, circle))}")
    return ordered


def _dependencies(ops: Sequence[OpNode], variables: Iterable[Sequence[VarNode]]) -> dict[OpNode, set[OpNode]]:
    before: dict[OpNode, set[OpNode]] = {op: set() for op in ops}
    for versions in variables:
        former: VarNode | None = None
        for node in versions:
            writer = node.producer
            for reader in node.consumers:
                if writer is not None and reader is not writer:
                    before[reader].add(writer)
            if former is not None and writer is not None:
                earlier = [*former.consumers, *([former.producer] if former.producer else [])]
                # Names are overwritten in place: who reads the version before has to run before it goes.
                before[writer].update(op for op in earlier if op is not writer)
            former = node
    return before
