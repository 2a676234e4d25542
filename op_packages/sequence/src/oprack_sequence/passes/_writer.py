"""The ops of a region, written again on rows."""

from __future__ import annotations

from typing import Any

from oprack.ir import OpNode, VarNode
from oprack.types import VarType

from oprack_sequence.passes._attention import Context
from oprack_sequence.passes._region import Region
from oprack_sequence.passes._rules import main_slot
from oprack_sequence.passes._sizes import RESHAPES
from oprack_sequence.passes._spans import Product, Windows


def write(region: Region) -> None:
    """Let all that a region needs run on rows, and give those who read whole batches what they are now."""
    writer = _Writer(region)
    for op, context in region.crossed.items():
        writer.cross(op, context)
    for node, readers in region.near.items():
        writer.show(node, readers)
    for node in region.needed:
        if readers := region.outside(node):
            writer.end(node, readers)


class _Writer:
    """Writes the ops of a region on rows."""

    def __init__(self, region: Region) -> None:
        self._region, self._graph = region, region.graph
        self._rows: dict[tuple[VarNode, int], VarNode] = {}  # by variable, and rows of padding around the others
        self._with_lod: dict[tuple[VarNode, int], VarNode] = {}
        self._biases: dict[VarNode, VarNode] = {}
        self._places: dict[int, tuple[VarNode, VarNode]] = {}
        self._among: dict[tuple[int, int], VarNode] = {}
        self._first = next(iter(region.needed)).producer
        needed = [region.plans[n] for n in region.needed]
        self._checks = {
            "strict": region.mask.source.dtype != "bool",
            "contiguous": any(isinstance(p, Context) and p.scores.bias is not None for p in needed),
        }
        self._mask = self._kept()
        for node in region.needed:
            if (node, self._reach(node)) not in self._rows:
                self._write(node)
            for reader in node.consumers:
                if reader.type == "shape":
                    self._ask_mask(reader, node)

    def _reach(self, node: VarNode) -> int:
        """With how many rows of padding around the others a variable is written."""
        return self._region.reach[node] or 0

    def _kept(self) -> VarNode:
        """The mask as [B, S], of what is kept."""
        mask, where = self._region.mask, self._first
        kept, rank = mask.source, len(self._region.sizes.dims(mask.source) or ())
        if rank > 2:
            kept = self._add("squeeze2", {"X": [kept]}, {"axes": list(range(1, rank - 1))}, where)
        if not mask.kept and mask.source.dtype == "bool":
            return self._add("logical_not", {"X": [kept]}, {}, where)
        return kept if mask.kept else self._add("scale", {"X": [kept]}, {"scale": -1.0, "bias": 1.0}, where)

    def _kept_with(self, reach: int) -> tuple[VarNode, VarNode]:
        """(rows of the mask with LoD, their places), with so many of padding around those that are kept."""
        if reach not in self._places:
            rows, index = (self._graph.new_var(f"{self._mask.name}.{name}") for name in ("rows", "index"))
            self._graph.add_op(
                "unpad_by_mask",
                {"X": [self._mask], "Mask": [self._mask]},
                {"Out": [rows], "Index": [index]},
                {**self._checks, "reach": reach},
                before=self._first,
            )
            self._places[reach] = rows, index
        return self._places[reach]

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

    def _of(self, node: VarNode, reach: int, before: OpNode | None) -> VarNode:
        """The rows of a variable, with so many of padding around those that are kept."""
        if (node, reach) in self._rows:
            return self._rows[node, reach]
        written = self._rows.get((node, self._reach(node))) if node in self._region.plans else None
        if written is not None:
            rows = self._fewer(written, self._reach(node), reach, before)
        else:
            rows = self._add("unpad_by_mask", {"X": [node], "Mask": [self._mask]}, {"reach": reach}, before)
        self._rows[node, reach] = rows
        return rows

    def _fewer(self, rows: VarNode, reach: int, wanted: int, before: OpNode | None) -> VarNode:
        """Those of rows that have fewer of padding around the others."""
        if reach == wanted:
            return rows
        if (reach, wanted) not in self._among:
            (_, all_), (_, some) = self._kept_with(reach), self._kept_with(wanted)
            self._among[reach, wanted] = self._add(
                "searchsorted", {"SortedSequence": [all_], "Values": [some]}, {}, self._first
            )
        return self._add("gather", {"X": [rows], "Index": [self._among[reach, wanted]]}, {}, before)

    def _write(self, node: VarNode) -> None:
        plan, where, reach = self._region.plans[node], node.producer, self._reach(node)
        if isinstance(plan, Context):
            self._rows[node, reach] = self._attention(plan, reach, where)
            return
        if isinstance(plan, Windows):
            self._rows[node, reach] = self._windows(plan, node, where)
            return
        if isinstance(plan, Product):
            dims = [d for d in (self._region.sizes.dims(plan.filter) or ())[:2] if isinstance(d, int)]
            weights = self._add("reshape2", {"X": [plan.filter]}, {"shape": dims}, where)
            factors = {"X": [self._of(plan.source, reach, where)], "Y": [weights]}
            self._rows[node, reach] = self._add("matmul_v2", factors, {"trans_y": True}, where)
            return
        op = plan.op
        slots = {"X": op.inputs["X"]} if op.type in RESHAPES else op.inputs
        lead_of = self._region.lead_of
        inputs = {s: [self._of(n, reach, where) if lead_of(n) else n for n in nodes] for s, nodes in slots.items()}
        proto = self._graph.manager.op_info(op.type).proto
        attrs = {name: value for name, value in op.desc.attrs.items() if name in proto.attrs} | plan.attrs
        outputs = {s: [self._graph.new_var(n.name) for n in nodes] for s, nodes in op.outputs.items()}
        self._graph.add_op(op.type, inputs, outputs, attrs, before=where)
        main = main_slot(op)
        self._rows.update({(n, reach): rows for n, rows in zip(op.outputs[main], outputs[main], strict=True)})

    def _windows(self, plan: Windows, node: VarNode, where: OpNode | None) -> VarNode:
        """Rows near to each other beside one another: [N, size, ...], and the dims in the order of the variable."""
        reach = self._reach(node)
        whole = reach + max(plan.before, plan.behind)
        size = plan.before + plan.behind + 1
        attrs = {"size": size, "padding": [plan.before, plan.behind]}
        rows = self._add("sequence_unfold", {"X": [self._sequences(plan.source, whole, where)]}, attrs, where)
        rows = self._fewer(rows, whole, reach, where)
        inner = list(self._region.sizes.dims(node) or ())[2:]
        at = plan.axis - 2
        del inner[at]
        rows = self._add("reshape2", {"X": [rows]}, {"shape": [0, size, *inner]}, where)
        axes = [0, *range(2, len(inner) + 2)]
        axes.insert(at + 1, 1)
        return self._add("transpose2", {"X": [rows]}, {"axis": axes}, where)

    def _attention(self, context: Context, reach: int, where: OpNode | None) -> VarNode:
        """Queries with some rows of padding."""
        return self._attend(self._sequences(context.scores.q, reach, where), context, where)

    def _attend(self, q: VarNode, context: Context, where: OpNode | None) -> VarNode:
        """Attention to keys and values without padding."""
        k = self._sequences(context.scores.k, 0, where)
        inputs = {"Q": [q], "K": [k], "V": [self._of(context.v, 0, where)]}
        if context.scores.bias is not None:
            inputs["RelativeBias"] = [self._bias(context.scores.bias, where)]
        attrs = {"scale": context.scores.factor, "is_test": True}
        out = self._add("sequence_attention", inputs, attrs, where)
        return out if context.factor == 1 else self._add("scale", {"X": [out]}, {"scale": context.factor}, where)

    def cross(self, op: OpNode, context: Context) -> None:
        """Let another text, all of whose rows are kept, attend to rows."""
        q = context.scores.q
        places = {"axes": [2, 3], "starts": [0, 0], "ends": [1, 1], "decrease_axis": [2, 3]}
        all_ = self._add("slice", {"Input": [q]}, places, op)
        all_ = self._add("fill_any_like", {"X": [all_]}, {"value": 1.0, "dtype": VarType.BOOL}, op)
        rows, index = (self._graph.new_var(f"{q.name}.{name}") for name in ("rows", "index"))
        self._graph.add_op("unpad_by_mask", {"X": [q], "Mask": [all_]}, {"Out": [rows], "Index": [index]}, before=op)
        found = self._attend(rows, context, op)
        found = self._add("pad_by_index", {"X": [found], "Index": [index], "Like": [all_]}, {}, op)
        out = op.outputs["Out"][0]
        if self._graph.replace_var(out, found) and not op.is_producer():
            self._graph.remove_op(op)

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

    def _sequences(self, node: VarNode, reach: int, where: OpNode | None) -> VarNode:
        """Rows with LoD, which products drop."""
        if (node, reach) not in self._with_lod:
            inputs = {"X": [self._of(node, reach, where)], "Y": [self._kept_with(reach)[0]]}
            self._with_lod[node, reach] = self._add("lod_reset", inputs, {}, where)
        return self._with_lod[node, reach]

    def _padded(self, node: VarNode, reach: int, before: OpNode) -> VarNode:
        """A whole batch of rows, with zeros for padding further from others than `reach`."""
        inputs = {"X": [self._of(node, reach, before)], "Index": [self._kept_with(reach)[1]], "Like": [self._mask]}
        return self._add("pad_by_index", inputs, {}, before)

    def show(self, node: VarNode, readers: list[OpNode]) -> None:
        """Give those who mix rows near to each other what they look at."""
        padded = self._padded(node, self._reach(node), readers[0])
        for op in readers:
            self._graph.replace_input(op, node, padded)

    def end(self, node: VarNode, readers: list[OpNode]) -> None:
        """Give those who read a whole batch what it is now."""
        former, padded = node.producer, self._padded(node, 0, readers[0])
        if self._graph.replace_var(node, padded) and former is not None and not former.is_producer():
            self._graph.remove_op(former)
