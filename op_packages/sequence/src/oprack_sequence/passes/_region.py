"""What may run on rows without padding, as far as one mask goes, and what of it is worth it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

from oprack.ir import Graph, OpNode, VarNode
from oprack.types import EMPTY_VAR, VarType

from oprack_sequence.passes._attention import Context, Forms
from oprack_sequence.passes._distances import Distances
from oprack_sequence.passes._masks import Mask, flags_of
from oprack_sequence.passes._rules import main_slot, on_rows
from oprack_sequence.passes._sizes import PRODUCTS, Size, Sizes, same
from oprack_sequence.passes._spans import Product, Spans, Windows

_MATRICES = PRODUCTS | {"mul"}


class Again(NamedTuple):
    """An op that runs on rows with other attributes."""

    op: OpNode
    attrs: dict[str, Any]


Plan: TypeAlias = "Again | Context | Product | Windows"


class Region:
    """What one mask allows to run on rows.

    Attributes:
        plans: How a variable is written on rows.
        reach: How many rows of padding around others somebody looks at in a variable; None: all.
        needed: Variables to be written on rows, in order: those that are read as a whole, and what they are made of.
        crossed: Ops that give whole batches of another text which attends to this one, and how.
        near: Those of them in which ops mix rows near to each other, and these ops, which read them as a whole.
    """

    def __init__(self, graph: Graph, sizes: Sizes, mask: Mask) -> None:
        self.graph, self.sizes, self.mask = graph, sizes, mask
        self.forms = Forms(graph, sizes, mask, Distances(graph, sizes), self.is_rows)
        self.spans = Spans(graph, sizes, self.is_rows)
        self.plans: dict[VarNode, Plan] = {}
        self.made: dict[OpNode, list[VarNode]] = {}  # what an op gives that has a plan or a form
        self._mixes: dict[OpNode, VarNode] = {}  # what an op makes of rows near to each other
        self._crossed: dict[OpNode, Context] = {}  # what gives a whole batch of another text
        self.reach: dict[VarNode, int | None] = {}
        for op in graph.ops:
            self._follow(op)
        while self._look_around():
            pass
        self._free = {n for n in self.plans if self.reach[n] is not None}
        self.near: dict[VarNode, list[OpNode]] = {}
        self.crossed = {op: c for op, c in self._crossed.items() if {c.scores.k, c.v} <= self._free}
        self.needed = self._needed()

    @property
    def attentions(self) -> int:
        """How many attentions run without padding."""
        return sum(isinstance(self.plans[n], Context) for n in self.needed) + len(self.crossed)

    def is_worth_it(self) -> bool:
        """Whether more products run without padding than variables are unpadded and padded for them."""
        products = sum(plan.op.type in _MATRICES for n in self.needed if isinstance(plan := self.plans[n], Again))
        ends = sum(bool(self.outside(n)) for n in self.needed)
        return self.attentions > 0 and products + self.attentions > ends + len(self.near) + self._count_entries()

    def lead_of(self, node: VarNode | None) -> int:
        """2 for [B, S, ...] of the mask's batch, 1 for [B S n, ...], else 0."""
        if node is None or node.name == EMPTY_VAR or self.graph.is_overwritten(node):
            return 0
        dims, desc = self.sizes.dims(node), node.desc
        if not dims or desc is None or desc.type != VarType.LOD_TENSOR or desc.lod_level:
            return 0
        if len(dims) > 1 and all(map(same, dims, self.mask.dims)):
            return 2
        if not isinstance(dims[0], Size):
            return 0
        factors, _, plus = dims[0].made_of
        rows = sorted((d.root() for d in self.mask.dims if isinstance(d, Size)), key=id)
        return int(plus == 0 and len(rows) == 2 and factors == rows)

    def is_rows(self, node: VarNode | None) -> bool:
        """Whether a variable is [B, S, ...] of the mask's batch."""
        return self.lead_of(node) == 2

    # Which ops --------------------------------------------------------------------------------------------------------
    def _follow(self, op: OpNode) -> None:
        if op.opaque or op.malformed or op.hidden_writes or op.hidden_reads or op.runs_itself:
            return
        context, out = self.forms.context_of(op), op.output("Out")
        if context is not None and out is not None:
            if self.is_rows(out):
                self.plans[out], self.made[op] = context, [out]
            elif not self.is_rows(context.scores.q):
                self._crossed[op] = context
            return
        form = self.forms.follow(op)
        if form is not None:
            self.made[op] = [form]
            return
        attrs = on_rows(op, self.sizes, self.lead_of)
        nodes = op.outputs.get(main_slot(op), [])
        if attrs is not None and nodes and all(map(self.lead_of, nodes)):
            if not any(self.graph.is_kept(n) for n in op.writes() if n not in nodes):
                self.made[op] = nodes
                self.plans.update(dict.fromkeys(nodes, self.spans.windows_of(op) or Again(op, attrs)))
            return
        near = self.spans.follow(op)
        product = None if near is None or not self.is_rows(near) else self.spans.product_of(op)
        if near is not None and product is not None:
            self.plans[near], self.made[op] = product, [near]
        elif near is not None:
            self._mixes[op] = near

    # Which variables --------------------------------------------------------------------------------------------------
    def _look_around(self) -> bool:
        """Find the reach of all variables; whether ops have to stay that were to run on rows."""
        for op in reversed(self.graph.ops):
            found = {node: self._reach_of(node) for node in op.writes()}
            most = max((r for r in found.values() if r is not None), default=0)
            self.reach.update({node: None if r is None else most for node, r in found.items()})
        stay = [op for op in self.made if self.goes_on(op) and not self._has_operands(op)]
        for op in stay:
            for node in self.made.pop(op):
                self.plans.pop(node, None)
        return bool(stay)

    def _has_operands(self, op: OpNode) -> bool:
        """Whether rows with dims that were made one with others are there, and as many as the op makes."""
        reach = self.reach[self.made[op][0]]
        return all(self.lead_of(n) != 1 or (n in self.plans and self.reach[n] == reach) for n in op.reads())

    def _reach_of(self, node: VarNode) -> int | None:
        """How many rows around those that are kept have to be right; None where all do."""
        kept = self.graph.is_kept(node) and not (node in self.plans and self.is_rows(node))
        if node.pinned or node.persistable or kept:
            return None
        found = [self.needs(op, node) for op in node.consumers]
        return None if None in found else max(found, default=0)  # type: ignore[type-var]

    def needs(self, op: OpNode, node: VarNode) -> int | None:
        """How many rows of a variable an op looks at around those that are kept; None for all."""
        if op in self._crossed:
            return 0
        if self.goes_on(op):
            return self.forms.needs(op, node, max(self.reach[out] or 0 for out in self.made[op]))
        if op.type == "shape" and self.lead_of(node) != 1:
            return 0
        near = self._mixes.get(op)
        if near is not None and (reach := self.reach[near]) is not None:
            return self.spans.needs(near, reach)
        return 0 if node in self.plans and self.ends_here(op, node) else None

    def goes_on(self, op: OpNode) -> bool:
        """Whether an op may run on rows."""
        return op in self.made and all(self.reach[out] is not None for out in self.made[op])

    def ends_here(self, op: OpNode, node: VarNode) -> bool:
        """Whether an op may read whole rows with zeros for padding."""
        if not self.is_rows(node):
            return False
        if op.type == "fetch":
            return True
        if op.type == "slice":
            return self._takes_first(op) and self._stays_apart(op.output("Out"))
        return op.type == "elementwise_mul" and self._masks_padding(op, node)

    def _takes_first(self, op: OpNode) -> bool:
        """Whether a slice takes the first row of each sequence, as classifiers do."""
        wanted = {"axes": [1], "starts": [0], "ends": [1]}
        return len(op.reads()) == 1 and all(list(op.attr(name, ())) == value for name, value in wanted.items())

    def _stays_apart(self, node: VarNode | None) -> bool:
        """Whether what is computed of one row for each sequence is never mixed with that of other sequences."""
        waiting, seen = [node], {node}
        while waiting:
            one = waiting.pop()
            if one is None or one.pinned or one.persistable:
                return False
            for op in one.consumers:
                if op.type in ("fetch", "shape"):
                    continue
                if on_rows(op, self.sizes, self._lead_of_batch) is None:
                    return False
                new = [n for n in op.outputs.get(main_slot(op), []) if n not in seen]
                waiting += new
                seen.update(new)
        return True

    def _lead_of_batch(self, node: VarNode | None) -> int:
        """1 for [B, ...], else 0."""
        dims = self.sizes.dims(node)
        return int(dims is not None and len(dims) > 0 and same(dims[0], self.mask.dims[0]))

    def _masks_padding(self, op: OpNode, node: VarNode) -> bool:
        """Whether an op multiplies rows of padding with 0, as means over what is kept do."""
        others = [n for n in op.reads() if n is not node]
        if len(others) != 1:
            return False
        dims, other = self.sizes.dims(node), self.sizes.dims(others[0])
        flags = flags_of(self.graph, others[0])
        lost = flags.at0 if self.mask.kept else flags.at1
        fits = dims is not None and other is not None and len(dims) == len(other) and all(map(same, dims[:2], other))
        return fits and flags.source is self.mask.source and lost == 0

    # Which are worth it -----------------------------------------------------------------------------------------------
    def outside(self, node: VarNode) -> list[OpNode]:
        """Who reads a variable as a whole batch and not to mix rows near to each other; its producer when it is kept.

        Those that ask for its shape count where they take more of it than the dims of the mask.
        """
        inner = {**self._mixes, **self._crossed}
        readers = [op for op in node.consumers if not self.goes_on(op) and op not in inner]
        found = [op for op in readers if op.type != "shape" or self.asks_for_batch(op) is None]
        return [*found, node.producer] if self.graph.is_kept(node) and node.producer is not None else found

    def asks_for_batch(self, op: OpNode) -> dict[OpNode, slice] | None:
        """What those who read a shape take of B and S; None where one takes more."""
        rank, found = len(self.sizes.dims(op.input("Input")) or ()), dict[OpNode, slice]()
        if any(self.graph.is_kept(n) for n in op.writes()):
            return None
        for reader in (reader for n in op.writes() for reader in n.consumers):
            ends = [reader.attr(name, ()) for name in ("starts", "ends")]
            if reader.type != "slice" or len(reader.reads()) != 1 or list(map(len, ends)) != [1, 1]:
                return None
            taken = range(rank)[ends[0][0] : ends[1][0]]
            if not taken or taken[-1] > 1:
                return None
            found[reader] = slice(taken[0], taken[-1] + 1)
        return found

    def operands(self, node: VarNode) -> list[VarNode]:
        """The rows that a variable is made of."""
        plan = self.plans[node]
        if isinstance(plan, Context):
            return [plan.scores.q, plan.scores.k, plan.v]
        if isinstance(plan, Windows | Product):
            return [plan.source]
        return [n for n in plan.op.reads() if self.lead_of(n)]

    def _needed(self) -> dict[VarNode, None]:
        found = {n for n in self._free if self.outside(n)} | {
            n for c in self.crossed.values() for n in (c.scores.k, c.v)
        }
        waiting = list(found)
        while waiting:
            new = {m for n in self.operands(waiting.pop()) for m in self._free_ones(n) if m not in found}
            waiting += new
            found |= new
        return {n: None for n in self.plans if n in found}

    def _free_ones(self, node: VarNode) -> Iterator[VarNode]:
        """The variable itself if it may be written on rows, else the one that ops before it mix near rows of."""
        op = node.producer
        while node not in self._free:
            mixed = None if op is None else self.spans.operand(op)
            if mixed is None or op is None:
                return
            if mixed in self._free and op not in self.near.setdefault(mixed, []):
                self.near[mixed].append(op)
            node, op = mixed, mixed.producer
        yield node

    def _count_entries(self) -> int:
        """How many variables of numbers have to be unpadded."""
        found = {n for node in self.needed for n in self.operands(node) if n not in self.needed}
        return sum(len(self.sizes.dims(n) or ()) > 2 for n in found)
