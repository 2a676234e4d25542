"""A padded encoder runs on rows without padding, between its mask and the last reader of whole rows.

Three questions decide, each over the whole graph: which variables are [B, S, ...] of the mask's batch (_sizes), which
ops compute each row by itself or are the attention that the mask belongs to (_rules, _attention), and of which
variables the rows of padding may hold anything, since nothing mixes them into other rows. What all three allow is
written again on rows; what reads whole batches gets them back with zeros for padding.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from oprack.ir import Graph, OpNode, VarNode
from oprack.ir.generic import remove_dead_code
from oprack.types import EMPTY_VAR, VarType

from oprack_sequence.passes._attention import Context, Forms
from oprack_sequence.passes._distances import Distances
from oprack_sequence.passes._masks import Mask, flags_of, mask_of, terms
from oprack_sequence.passes._rules import Rows, main_slot, on_rows
from oprack_sequence.passes._sizes import PRODUCTS, RESHAPES, Sizes, same

_MATRICES = PRODUCTS | {"mul"}


class _Again(NamedTuple):
    """An op that runs on rows with other attributes."""

    op: OpNode
    attrs: dict[str, Any]


def unpad(graph: Graph) -> int:
    """padded encoder  ->  pad_by_index(encoder of rows(unpad_by_mask(...)))

    Returns:
        How many attentions run without padding.
    """
    total, done = 0, list[Mask]()
    while graph.block.idx == 0:
        sizes = Sizes(graph)
        mask = next((m for m in _masks(graph, sizes) if not any(m.is_of(other) for other in done)), None)
        if mask is None:
            break
        done.append(mask)
        total += _Region(graph, sizes, mask).write()
    return total


def _masks(graph: Graph, sizes: Sizes) -> Iterable[Mask]:
    """The masks of all that is softmax of scores and something added."""
    for op in graph.ops:
        x = op.input("X")
        added = x.producer if op.type == "softmax" and x is not None else None
        if x is not None and added is not None and added.type == "elementwise_add" and not added.opaque:
            for node in (n for operand in reversed(terms(x)) for n in (operand, *terms(operand))):
                mask = mask_of(graph, sizes, node)
                if mask is not None:
                    yield mask


class _Region:
    """What one mask allows to run on rows."""

    def __init__(self, graph: Graph, sizes: Sizes, mask: Mask) -> None:
        self.graph, self.sizes, self.mask = graph, sizes, mask
        self.forms = Forms(graph, sizes, mask, Distances(graph, sizes), self.is_rows)
        self.plans: dict[VarNode, _Again | Context] = {}
        self.made: dict[OpNode, list[VarNode]] = {}  # what an op gives that has a plan or a form
        self._free: dict[VarNode, bool] = {}
        ops = graph.ops
        for op in ops:
            self._follow(op)
        for op in reversed(ops):
            for node in op.writes():
                self._free[node] = self._may_hold_anything(node)

    def is_rows(self, node: VarNode | None) -> bool:
        """Whether a variable is [B, S, ...] of the mask's batch."""
        if node is None or node.name == EMPTY_VAR or self.graph.is_overwritten(node):
            return False
        dims, desc = self.sizes.dims(node), node.desc
        if desc is None or desc.type != VarType.LOD_TENSOR or desc.lod_level or dims is None or len(dims) < 2:
            return False
        return all(map(same, dims[:2], self.mask.dims))

    # Which ops --------------------------------------------------------------------------------------------------------
    def _follow(self, op: OpNode) -> None:
        if op.opaque or op.malformed or op.hidden_writes or op.hidden_reads or op.runs_itself:
            return
        context, out = self.forms.context_of(op), op.output("Out")
        if context is not None and out is not None and self.is_rows(out):
            self.plans[out], self.made[op] = context, [out]
            return
        form = self.forms.follow(op)
        if form is not None:
            self.made[op] = [form]
            return
        attrs = on_rows(Rows(op, self.sizes, self.is_rows))
        nodes = op.outputs.get(main_slot(op), [])
        if any(self.graph.is_kept(n) for n in op.writes() if n not in nodes):
            return
        if attrs is not None and nodes and all(map(self.is_rows, nodes)):
            self.made[op] = nodes
            self.plans.update(dict.fromkeys(nodes, _Again(op, attrs)))

    # Which variables --------------------------------------------------------------------------------------------------
    def _may_hold_anything(self, node: VarNode) -> bool:
        """Whether no row of the batch gets to know what a variable holds for padding."""
        if node.pinned or node.persistable or (self.graph.is_kept(node) and node not in self.plans):
            return False
        return all(self._is_harmless(op, node) for op in node.consumers)

    def _is_harmless(self, op: OpNode, node: VarNode) -> bool:
        return self._goes_on(op) or (node in self.plans and self.ends_here(op, node))

    def _goes_on(self, op: OpNode) -> bool:
        """Whether an op may run on rows."""
        return op in self.made and all(self._free[out] for out in self.made[op])

    def ends_here(self, op: OpNode, node: VarNode) -> bool:
        """Whether an op may read whole rows with zeros for padding."""
        if op.type in ("fetch", "shape"):
            return True
        if op.type == "slice":
            return self._takes_first(op) and self._stays_apart(op.output("Out"))
        return op.type == "elementwise_mul" and self._masks_padding(op, node)

    def _takes_first(self, op: OpNode) -> bool:
        """Whether a slice takes the first row of each sequence, as classifiers do."""
        wanted = {"axes": [1], "starts": [0], "ends": [1]}
        return len(list(op.reads())) == 1 and all(list(op.attr(name, ())) == value for name, value in wanted.items())

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
                if on_rows(Rows(op, self.sizes, self._is_of_batch, 1)) is None:
                    return False
                new = [n for n in op.outputs.get(main_slot(op), []) if n not in seen]
                waiting += new
                seen.update(new)
        return True

    def _is_of_batch(self, node: VarNode | None) -> bool:
        dims = self.sizes.dims(node)
        return dims is not None and len(dims) > 0 and same(dims[0], self.mask.dims[0])

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

    # The rewrite ------------------------------------------------------------------------------------------------------
    def write(self) -> int:
        """Write what may run on rows again; returns how many attentions, 0 when it would not be worth it."""
        needed = self._needed()
        ends = [n for n in needed if self._outside(n)]
        attentions = sum(isinstance(self.plans[n], Context) for n in needed)
        products = sum(plan.op.type in _MATRICES for n in needed if isinstance(plan := self.plans[n], _Again))
        if not attentions or products + attentions <= len(ends) + self._count_entries(needed):
            return 0
        writer = _Writer(self, needed)
        for node in ends:
            writer.end(node, self._outside(node))
        remove_dead_code(self.graph)
        self.graph.sort()
        return attentions

    def _outside(self, node: VarNode) -> list[OpNode]:
        """Who reads a variable as a whole batch, besides those that ask for its shape; its producer when it is kept."""
        found = [op for op in node.consumers if not self._goes_on(op) and op.type != "shape"]
        producer = node.producer
        found += [op for op in node.consumers if op.type == "shape" and self.asks_for_batch(op) is None]
        return [*found, producer] if self.graph.is_kept(node) and producer is not None else found

    def asks_for_batch(self, op: OpNode) -> dict[OpNode, slice] | None:
        """What those who read a shape take of B and S; None where one takes more."""
        rank, found = len(self.sizes.dims(op.input("Input")) or ()), dict[OpNode, slice]()
        if any(self.graph.is_kept(n) for n in op.writes()):
            return None
        for reader in (reader for n in op.writes() for reader in n.consumers):
            ends = [reader.attr(name, ()) for name in ("starts", "ends")]
            if reader.type != "slice" or len(list(reader.reads())) != 1 or list(map(len, ends)) != [1, 1]:
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
        return [n for n in plan.op.reads() if self.is_rows(n)]

    def _needed(self) -> dict[VarNode, None]:
        """Variables to be written on rows: those that are read as a whole, and what they are made of, in order."""
        free = {n for n in self.plans if self._free[n]}
        waiting = [n for n in free if self._outside(n)]
        found = set(waiting)
        while waiting:
            new = [n for n in self.operands(waiting.pop()) if n in free and n not in found]
            waiting += new
            found.update(new)
        return {n: None for n in self.plans if n in found}

    def _count_entries(self, needed: Iterable[VarNode]) -> int:
        """How many variables of numbers have to be unpadded."""
        known = set(needed)
        found = {n for node in known for n in self.operands(node) if n not in known}
        return sum(len(self.sizes.dims(n) or ()) > 2 for n in found)


def _is_biased(plan: _Again | Context) -> bool:
    return isinstance(plan, Context) and plan.scores.bias is not None


class _Writer:
    """Writes the ops of a region on rows."""

    def __init__(self, region: _Region, needed: Iterable[VarNode]) -> None:
        self._region, self._graph = region, region.graph
        self._rows: dict[VarNode, VarNode] = {}
        self._with_lod: dict[VarNode, VarNode] = {}
        self._biases: dict[VarNode, VarNode] = {}
        self._begin(next(iter(needed)), any(_is_biased(region.plans[n]) for n in needed))
        for node in needed:
            if node not in self._rows:
                self._write(node)
            for reader in node.consumers:
                if reader.type == "shape":
                    self._ask_mask(reader, node)

    def _begin(self, first: VarNode, biased: bool) -> None:
        """The mask as [B, S], and places and LoD of what it keeps."""
        mask, where = self._region.mask, first.producer
        kept, rank = mask.source, len(self._region.sizes.dims(mask.source) or ())
        if rank > 2:
            kept = self._add("squeeze2", {"X": [kept]}, {"axes": list(range(1, rank - 1))}, where)
        if not mask.kept and mask.source.dtype == "bool":
            kept = self._add("logical_not", {"X": [kept]}, {}, where)
        elif not mask.kept:
            kept = self._add("scale", {"X": [kept]}, {"scale": -1.0, "bias": 1.0}, where)
        self._mask, self._index = kept, self._graph.new_var(f"{kept.name}.index")
        self._kept_rows = self._graph.new_var(f"{kept.name}.rows")
        self._graph.add_op(
            "unpad_by_mask",
            {"X": [kept], "Mask": [kept]},
            {"Out": [self._kept_rows], "Index": [self._index]},
            {"strict": mask.source.dtype != "bool", "contiguous": biased},
            before=where,
        )

    def _ask_mask(self, op: OpNode, node: VarNode) -> None:
        """Let a shape op that asks for B and S ask the mask."""
        taken = self._region.asks_for_batch(op)
        if taken is None:
            return
        self._graph.replace_input(op, node, self._mask)
        for reader, part in taken.items():
            reader.desc.set_attr("starts", [part.start])
            reader.desc.set_attr("ends", [part.stop])

    def _add(
        self, op_type: str, inputs: dict[str, list[VarNode]], attrs: dict[str, Any], before: OpNode | None
    ) -> VarNode:
        """Add an op; returns its first output."""
        outputs = self._graph.manager.op_info(op_type).proto.outputs
        wanted = {
            slot: [self._graph.new_var(next(iter(inputs.values()))[0].name)]
            for slot, o in outputs.items()
            if not (o.dispensable or o.extra)
        }
        self._graph.add_op(op_type, inputs, wanted, attrs, before=before)
        return next(iter(wanted.values()))[0]

    def _of(self, node: VarNode, before: OpNode | None) -> VarNode:
        """The rows of a variable."""
        if node not in self._rows:
            self._rows[node] = self._add("unpad_by_mask", {"X": [node], "Mask": [self._mask]}, {}, before)
        return self._rows[node]

    def _write(self, node: VarNode) -> None:
        plan, where = self._region.plans[node], node.producer
        if isinstance(plan, Context):
            self._rows[node] = self._attention(plan, where)
            return
        op, is_rows = plan.op, self._region.is_rows
        slots = {"X": op.inputs["X"]} if op.type in RESHAPES else op.inputs
        inputs = {s: [self._of(n, where) if is_rows(n) else n for n in nodes] for s, nodes in slots.items()}
        proto = self._graph.manager.op_info(op.type).proto
        attrs = {name: value for name, value in op.desc.attrs.items() if name in proto.attrs} | plan.attrs
        outputs = {s: [self._graph.new_var(n.name) for n in nodes] for s, nodes in op.outputs.items()}
        self._graph.add_op(op.type, inputs, outputs, attrs, before=where)
        main = main_slot(op)
        self._rows.update(zip(op.outputs[main], outputs[main], strict=True))

    def _attention(self, context: Context, where: OpNode | None) -> VarNode:
        q, k = (self._sequences(n, where) for n in (context.scores.q, context.scores.k))
        inputs = {"Q": [q], "K": [k], "V": [self._of(context.v, where)]}
        if context.scores.bias is not None:
            inputs["RelativeBias"] = [self._bias(context.scores.bias, where)]
        attrs = {"scale": context.scores.factor, "is_test": True}
        out = self._add("sequence_attention", inputs, attrs, where)
        return out if context.factor == 1 else self._add("scale", {"X": [out]}, {"scale": context.factor}, where)

    def _bias(self, node: VarNode, where: OpNode | None) -> VarNode:
        """[1, heads, S, S] by distance: the first column from the last row on, and the first row."""
        if node not in self._biases:
            column, row = (
                self._add(
                    "slice",
                    {"Input": [node]},
                    {"axes": [0, axis], "starts": [0, 0], "ends": [1, 1], "decrease_axis": [0, axis]},
                    where,
                )
                for axis in (3, 2)
            )
            column = self._add("flip", {"X": [column]}, {"axis": [1]}, where)
            column = self._add("slice", {"Input": [column]}, {"axes": [1], "starts": [0], "ends": [-1]}, where)
            self._biases[node] = self._add("concat", {"X": [column, row]}, {"axis": 1}, where)
        return self._biases[node]

    def _sequences(self, node: VarNode, where: OpNode | None) -> VarNode:
        """Rows with LoD, which products drop."""
        if node not in self._with_lod:
            inputs = {"X": [self._of(node, where)], "Y": [self._kept_rows]}
            self._with_lod[node] = self._add("lod_reset", inputs, {}, where)
        return self._with_lod[node]

    def end(self, node: VarNode, readers: list[OpNode]) -> None:
        """Give those who read a whole batch what it is now."""
        inputs = {"X": [self._rows[node]], "Index": [self._index], "Like": [self._mask]}
        former = node.producer
        padded = self._add("pad_by_index", inputs, {}, readers[0])
        if self._graph.replace_var(node, padded) and former is not None and not former.is_producer():
            self._graph.remove_op(former)
