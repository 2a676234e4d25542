"""Nodes of a Graph: ops, and the versions of variables that they read and write."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from oprack.desc import OpDesc, VarDesc
from oprack.types import EMPTY_VAR, AttrType


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
        hidden_reads, hidden_writes: Variables that no slot names: those of its sub-blocks, those that attributes name,
            and what an output held before where the op may leave part of it as it was.
        opaque: Patterns leave it alone, as it has sub-blocks, takes attributes from variables, or is malformed.
        malformed: How it contradicts its OpProto; such an op of a model stays as it is, and running it says what is
            wrong.
    """

    __slots__ = ("desc", "hidden_reads", "hidden_writes", "inputs", "malformed", "opaque", "outputs", "runs_itself")

    def __init__(self, desc: OpDesc, runs_itself: bool = False) -> None:
        self.desc = desc
        self.inputs: dict[str, list[VarNode]] = {}
        self.outputs: dict[str, list[VarNode]] = {}
        self.hidden_reads: list[VarNode] = []
        self.hidden_writes: list[VarNode] = []
        self.runs_itself = runs_itself
        self.malformed = ""
        self.opaque = any(t in _REACHING for t in desc.attr_types.values())

    @property
    def type(self) -> str:
        """The op's type."""
        return self.desc.type

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
        """The first variable of an input slot; None when it is absent.

        Args:
            slot: The slot.

        Returns:
            The variable.
        """
        nodes = self.inputs.get(slot)
        return nodes[0] if nodes else None

    def output(self, slot: str) -> VarNode | None:
        """The first variable of an output slot; None when it is absent.

        Args:
            slot: The slot.

        Returns:
            The variable.
        """
        nodes = self.outputs.get(slot)
        return nodes[0] if nodes else None

    def reads(self) -> Iterator[VarNode]:
        """Everything that it reads, hidden reads included."""
        for nodes in self.inputs.values():
            yield from (n for n in nodes if n.name != EMPTY_VAR)
        yield from self.hidden_reads

    def is_producer(self) -> bool:
        """Whether a variable still has the value that it writes: not when it was removed or replaced."""
        for nodes in self.outputs.values():
            for node in nodes:
                if node.producer is self and node.name != EMPTY_VAR:
                    return True
        return any(node.producer is self for node in self.hidden_writes)

    def writes(self) -> Iterator[VarNode]:
        """Everything that it writes, hidden writes included."""
        for nodes in self.outputs.values():
            yield from (n for n in nodes if n.name != EMPTY_VAR)
        yield from self.hidden_writes

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
    dtypes = {n.dtype for n in nodes}
    return len(dtypes) == 1 and None not in dtypes
