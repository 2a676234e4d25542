"""Nodes of a Graph: ops, the versions of variables that they read and write, and the order that follows."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Any

from oprack.desc import BlockDesc, OpDesc, ProgramDesc, VarDesc
from oprack.desc.reach import named_by_attributes
from oprack.errors import GraphError
from oprack.types import EMPTY_VAR, AttrType


def used_by_blocks(blocks: Iterable[BlockDesc]) -> tuple[set[str], set[str]]:
    """Names that the ops of these blocks read (attributes included) and write."""
    read: set[str] = set()
    written: set[str] = set()
    for block in blocks:
        for op in block.ops:
            read.update(op.input_arg_names(), named_by_attributes(op))
            written.update(op.output_arg_names())
    return read, written


def names_of(program: ProgramDesc) -> set[str]:
    """Every name that an op of the program reads or writes."""
    read, written = used_by_blocks(program.blocks)
    return read | written


class VarNode:
    """One version of a variable: the value between one write of the name and the next.

    Args:
        name: The variable.
        producer: The op that writes it; None when it comes from outside (a feed, a parameter, an outer block).
        desc: Its VarDesc, None when no block declares the name.
        fact: Container, dtype and dims that hold in every run (see oprack.ir.facts).

    Attributes:
        consumers: The ops that read it, each once.
        pinned: Something reaches it by name (a sub-block, an attribute), so that it can neither be renamed nor removed.
    """

    __slots__ = ("_consumers", "desc", "fact", "name", "pinned", "producer", "version")

    def __init__(
        self, name: str, desc: VarDesc | None, producer: OpNode | None = None, fact: VarDesc | None = None
    ) -> None:
        self.name = name
        self.desc = desc
        self.producer = producer
        self.fact = fact or VarDesc(name)
        self.version = 0
        self.pinned = False
        self._consumers: dict[OpNode, None] = {}

    @property
    def consumers(self) -> list[OpNode]:
        """Ops that read the value."""
        return list(self._consumers)

    @property
    def persistable(self) -> bool:
        """Whether it outlives a run, as parameters do."""
        return self.desc is not None and self.desc.persistable

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Dims that hold in every run, -1 where runs may differ; None when not even their number is known."""
        return self.fact.shape

    @property
    def expected_shape(self) -> tuple[int, ...] | None:
        """Dims as the program declares them: a guess, fit for weighing costs and for nothing else."""
        return self.fact.shape if self.desc is None else self.desc.shape

    @property
    def dtype(self) -> str | None:
        """The dtype in every run; None when it is not known."""
        return self.fact.dtype_name()

    def __repr__(self) -> str:
        return f"<VarNode {self.name}:{self.version}>"


class OpNode:
    """An op with the nodes of its slots.

    Args:
        desc: The OpDesc.
        runs_itself: It has no kernel, so it may have effects.

    Attributes:
        type: The op's type.
        hidden_reads, hidden_writes: Variables that no slot names: those of its sub-blocks, those that attributes name,
            and what an output held before where the op may leave part of it as it was.
        opaque: Patterns leave it alone, as it has sub-blocks, takes attributes from variables, or is malformed.
        malformed: How it contradicts its OpProto; such an op of a model stays as it is, and running it says what is
            wrong.
    """

    __slots__ = (
        "desc",
        "hidden_reads",
        "hidden_writes",
        "inputs",
        "malformed",
        "opaque",
        "outputs",
        "runs_itself",
        "type",
    )

    def __init__(self, desc: OpDesc, runs_itself: bool = False) -> None:
        self.desc = desc
        self.type = desc.type
        self.inputs: dict[str, list[VarNode]] = {}
        self.outputs: dict[str, list[VarNode]] = {}
        self.hidden_reads: list[VarNode] = []
        self.hidden_writes: list[VarNode] = []
        self.runs_itself = runs_itself
        self.malformed = ""
        self.opaque = not _REACHING.isdisjoint(desc.attr_types.values())

    def attr(self, name: str, default: Any = None) -> Any:
        """An attribute that the op's desc gives.

        Args:
            name: The attribute.
            default: What to return where the desc does not give it.

        Returns:
            Its value.
        """
        return self.desc.attrs.get(name, default)

    def input(self, slot: str) -> VarNode | None:
        """The first variable of an input slot; None when it is absent."""
        nodes = self.inputs.get(slot)
        return nodes[0] if nodes else None

    def output(self, slot: str) -> VarNode | None:
        """The first variable of an output slot; None when it is absent."""
        nodes = self.outputs.get(slot)
        return nodes[0] if nodes else None

    def reads(self) -> list[VarNode]:
        """Everything that it reads, hidden reads included."""
        return [n for nodes in self.inputs.values() for n in nodes if n.name != EMPTY_VAR] + self.hidden_reads

    def is_producer(self) -> bool:
        """Whether a variable still has the value that it writes: not when it was removed or replaced."""
        for nodes in self.outputs.values():
            for node in nodes:
                if node.producer is self and node.name != EMPTY_VAR:
                    return True
        return any(node.producer is self for node in self.hidden_writes)

    def writes(self) -> list[VarNode]:
        """Everything that it writes, hidden writes included."""
        return [n for nodes in self.outputs.values() for n in nodes if n.name != EMPTY_VAR] + self.hidden_writes

    def __repr__(self) -> str:
        left = ", ".join(n.name for n in self.writes())
        return f"<OpNode {left} = {self.type}({', '.join(n.name for n in self.reads())})>"


_REACHING = frozenset({AttrType.BLOCK, AttrType.BLOCKS, AttrType.VAR, AttrType.VARS})


def one_dtype(nodes: Iterable[VarNode]) -> bool:
    """Whether values have one dtype, and it is known.

    Ops give other results on mixed dtypes, or refuse them: an op that is to stand for several asks this first.

    Args:
        nodes: The values.

    Returns:
        Whether it is so.
    """
    dtypes = {n.fact.dtype for n in nodes}
    return len(dtypes) == 1 and None not in dtypes


class Versions:
    """The versions of the variables of a block, in the order of their writes.

    Args:
        block: The block.
        entering: Facts of the values that come from outside of the block, by name.
        elsewhere: (names that other blocks read, names that they write); versions of these are pinned.
    """

    def __init__(
        self,
        block: BlockDesc,
        entering: Mapping[str, VarDesc],
        elsewhere: tuple[Collection[str], Collection[str]],
    ) -> None:
        self._block, self._entering, self._elsewhere = block, entering, elsewhere
        self._by_name: dict[str, list[VarNode]] = {}

    def of(self, name: str) -> list[VarNode]:
        """The versions of a variable, in order; the first is number 0 when its value comes from outside."""
        return list(self._by_name.get(name, ()))

    def lists(self) -> Iterator[list[VarNode]]:
        """The versions of each variable."""
        return iter(self._by_name.values())

    def latest(self, name: str) -> VarNode | None:
        """The last version of a variable; None when nothing has read or written it."""
        versions = self._by_name.get(name)
        return versions[-1] if versions else None

    def read(self, name: str) -> VarNode:
        """The version that an op reads which comes next."""
        if name == EMPTY_VAR:
            # Absent arguments are no variable: each gets a node that nothing else shares.
            return VarNode(name, None)
        node = self.latest(name)
        if node is None:
            node = VarNode(name, self._block.find_var_recursive(name), fact=self._entering.get(name))
            self.add(node)
        return node

    def write(self, name: str, op: OpNode, fact: VarDesc | None) -> VarNode:
        """The new version that an op writes which comes next."""
        node = VarNode(name, self._block.find_var_recursive(name), op, fact)
        if name != EMPTY_VAR:
            self.add(node)
        return node

    def add(self, node: VarNode) -> None:
        """Add a version, and give it its number."""
        versions = self._by_name.setdefault(node.name, [])
        # Number 0 is kept for the value from outside, whether or not anything reads it.
        node.version = versions[-1].version + 1 if versions else int(node.producer is not None)
        node.pinned = any(node.name in names for names in self._elsewhere)
        versions.append(node)

    def remove(self, node: VarNode) -> None:
        """Take out a version that nothing reads or writes any more."""
        self._by_name[node.name].remove(node)

    def is_overwritten(self, node: VarNode, unchanged: Collection[OpNode]) -> bool:
        """Whether the name is written again, other than by ops that write back what they read (`unchanged`)."""
        versions = self._by_name.get(node.name)
        if not versions or versions[-1] is node:
            return False
        # Numbers stay when versions go, so the list is sorted and has gaps.
        place = bisect_right(versions, node.version, key=lambda v: v.version)
        return any(versions[i].producer not in unchanged for i in range(place, len(versions)))


class OpList:
    """Ops in execution order. Insertions and removals are queued, and applied together by `in_order`.

    A pass changes many places and reads the order rarely, so each change takes constant time.
    """

    def __init__(self) -> None:
        self._ops: list[OpNode] = []
        self._ever: list[OpNode] = []
        self._removed: set[OpNode] = set()
        self._inserted: dict[OpNode, list[OpNode]] = {}

    def append(self, op: OpNode) -> None:
        """Add the next op of a block while the graph is built; nothing may have been inserted or removed yet."""
        self._ops.append(op)
        self._ever.append(op)

    def insert(self, op: OpNode, before: OpNode | None) -> None:
        """Add an op before another one, or last when `before` is None."""
        self._ever.append(op)
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

    def take_apart(self) -> None:
        """Let go of the variables of all ops that there ever were: nodes refer to each other in circles."""
        for op in self._ever:
            op.inputs, op.outputs, op.hidden_reads, op.hidden_writes = {}, {}, [], []

    def reorder(self, ops: Sequence[OpNode]) -> None:
        """Replace the order by another one of the same ops."""
        self._ops = list(ops)


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
