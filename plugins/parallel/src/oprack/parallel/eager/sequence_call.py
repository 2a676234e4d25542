"""Calls with global tensors that have LoD, or rows that are not split evenly: whole sequences go to each rank."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
from oprack.cache import Cache
from oprack.eager_tensor import Edge, Node, Tensor, new_tensor, split_edge
from oprack.eager_tensor.devices import other_draws
from oprack.eager_tensor.meta import meta_of_value
from oprack.errors import PreconditionNotMetError
from oprack.interpreter.eager import EAGER, RuleMaker
from oprack.interpreter.op_expr import OpExpr
from oprack.op.sbp import Signature, broadcast, split
from oprack.parallel.eager.arguments import Metas, formed, shapes_of
from oprack.parallel.eager.global_plan import PLANS, Plan, local_part
from oprack.parallel.eager.global_tensor import global_tensor
from oprack.parallel.eager.logical_shapes import Shares, logical_shapes
from oprack.parallel.eager.sequence_rule import Saved, SequenceRule
from oprack.parallel.eager.sequences import Rows, box_rows_of, joined, rows_of, split_axis, whole_lod
from oprack.parallel.layouts.layout import Layout, Placement, balanced
from oprack.parallel.layouts.signatures import REPLICATED, Choice, choose
from oprack.tensor import LoDTensor

Lods = tuple[tuple[tuple[int, ...], ...], ...]


def sequence_calls(expr: OpExpr, metas: Metas, placement: Placement, make_rule: RuleMaker | None) -> Callable[..., Any]:
    """The function that serves calls of an expression with arguments of these metas; see `global_call.first`.

    What a call does depends on the offsets of its arguments, so there is a plan for each batch.
    """
    plans = Cache(PLANS)

    def call(*given: Tensor | None) -> Any:
        shapes = shapes_of(given)
        lods: Lods = tuple([() if a is None else tuple(map(tuple, whole_lod(a))) for a in given])
        rows = tuple([None if a is None else a._rows for a in given])
        plan: SequencePlan | None = plans[shapes, lods, rows]
        if plan is None:
            plan = plans[shapes, lods, rows] = SequencePlan(expr, metas, shapes, placement, make_rule, lods, rows)
        return plan.call(*given)

    return call


class SequencePlan(Plan):
    """As Plan, for arguments of certain offsets.

    Attributes:
        rows: How the rows of each argument lie, where they are not split evenly.
        wanted_rows: How they have to lie for the call on the parts.
    """

    def __init__(
        self,
        expr: OpExpr,
        metas: Metas,
        shapes: Sequence[Any],
        placement: Placement,
        make_rule: RuleMaker | None,
        lods: Lods,
        rows: Sequence[Rows | None],
    ) -> None:
        self.lods, self.rows = lods, rows
        self.wanted_rows: list[Rows | None] = [None] * len(rows)
        self.lod_of: Shares = {}
        self._first: Rows | None = None
        self._per_sequence: set[int] = set()
        super().__init__(expr, metas, shapes, placement, make_rule)
        self._rules: dict[Any, SequenceRule] = {}

    # What is decided once ---------------------------------------------------------------------------------------------
    def _agreed_on(self) -> Any:
        return None  # not the offsets, which each batch has others of

    def _results(self, metas: Metas) -> list[Any] | None:
        found, self.lod_of = logical_shapes(self.expr, metas, self.shapes, self.lods)
        return found

    def _fitting(self, found: list[Signature], slots_in: Sequence[str], slots_out: Sequence[str]) -> list[Signature]:
        ranks = max(self.placement.shape)
        return [s for s in found if self._fits(s, slots_in, slots_out, ranks)]

    def _fits(self, signature: Signature, slots_in: Sequence[str], slots_out: Sequence[str], ranks: int) -> bool:
        """Whether a signature cuts rows between sequences alone, and all rows at the same places."""
        chosen = [k for k, slot in enumerate(slots_in) if signature.inputs.get(slot, None) == split(0)]
        outs = [signature.outputs[slot] for slot in slots_out if slot in signature.outputs]
        in_rows = [k for k in chosen if self.shapes[k] is not None and (self.lods[k] or self.rows[k] is not None)]
        if not in_rows:
            makes = signature.by_sequence is not None and all(slots_in[k] in signature.by_sequence for k in chosen)
            return (makes and self._are_even(chosen, ranks)) or not any(s == split(0) for s in outs)
        split_here = [s for s in (*signature.inputs.values(), *outs) if s.kind == "S"]
        counts = {len(self.lods[k][0]) - 1 for k in in_rows if self.lods[k]}
        if any(s != split(0) for s in split_here) or len(counts) > 1 or (counts and min(counts) < ranks):
            return False
        if signature.by_sequence is not None:
            by_lod = [k for k in in_rows if self.lods[k]]
            if not self._pairs(signature.same_lod, [(slots_in[k], self.lods[k]) for k in by_lod]):
                return False
            # Of several levels, the op alone knows of whose sequences an input without LoD has rows.
            flat = all(len(self.lods[k]) == 1 for k in by_lod)
            cuts = {rows_of(self.lods[k], ranks).cuts for k in by_lod if slots_in[k] in signature.same_lod}
            others = [self.rows[k] for k in in_rows if not self.lods[k]]
            return all(r is not None and {r.cuts} == cuts for r in others) and all(
                k in in_rows or self.shapes[k] is None or (flat and self.shapes[k][0] in counts) for k in chosen
            )
        size = self.shapes[in_rows[0]][0]
        results = [] if self.results is None else self.results
        made = [
            d
            for d, slot in zip(results, slots_out, strict=False)
            if d is not None and signature.outputs.get(slot) == split(0)
        ]
        cuts = {c.cuts for k in in_rows if (c := self._own_rows(k, ranks)) is not None}
        return (
            len(cuts) == 1
            and all(self.shapes[k] is None or self.shapes[k][0] == size for k in chosen)
            and all(d[0] == size for d in made)
        )

    def _are_even(self, chosen: Sequence[int], ranks: int) -> bool:
        """Whether arguments have a row for each sequence, as many, and no rank has none."""
        counts = {self.shapes[k][0] for k in chosen if self.shapes[k] is not None}
        return len(counts) == 1 and min(counts) >= ranks

    def _pairs(self, same_lod: Sequence[str], lods: Sequence[tuple[str, tuple[tuple[int, ...], ...]]]) -> bool:
        """Whether a part's sequences of each slot are those that belong to its sequences of the others.

        One rank may run what this refuses: many an op reads the LoD of one input alone, or one of its levels.
        """
        outer = {lod[:-1] for _, lod in lods}
        alike = {lod for slot, lod in lods if slot in same_lod}
        return len(outer) <= 1 and len(alike) <= 1

    def _own_rows(self, k: int, ranks: int) -> Rows | None:
        """How the rows of an argument lie by itself when so many ranks share it."""
        if self.lods[k]:
            return rows_of(self.lods[k], ranks)
        return self.rows[k]

    def _choose(self, found: Sequence[Signature], slots_in: list[str], slots_out: list[str], sizes: Any) -> Choice:
        chosen = choose(found, self.placement, slots_in, slots_out, self.sources, self.shapes, sizes)
        split_by = [s for s in chosen.signatures if any(v == split(0) for v in s.inputs.values())]
        if len(split_by) > 1:  # rows are split along one axis alone
            chosen = choose([REPLICATED], self.placement, slots_in, slots_out, self.sources, self.shapes, sizes)
            split_by = []
        if split_by:
            self._note_rows(chosen, slots_in)
        return chosen

    def _note_rows(self, choice: Choice, slots_in: Sequence[str]) -> None:
        """Where the rows of the arguments have to be cut."""
        axes = [None if t is None else split_axis(t) for t in choice.inputs]
        axis = next(a for a in axes if a is not None)
        ranks = self.placement.shape[axis]
        own = [None if a is None else self._own_rows(k, ranks) for k, a in enumerate(axes)]
        self._first = next((r for r in sorted(filter(None, own), key=lambda r: not r.lod)), None)
        by_sequence = choice.signatures[axis].by_sequence
        names = [slot for slot, flags in self.expr.outputs for _ in flags]
        self._per_sequence = {j for j, slot in enumerate(names) if slot in (by_sequence or ())}
        for k, a in enumerate(axes):
            if a is None or self._first is None:
                continue
            if own[k] is not None:
                self.wanted_rows[k] = own[k]
            elif by_sequence is None or slots_in[k] not in by_sequence:
                self.wanted_rows[k] = Rows(self._first.cuts)

    def _share_of(self, axis: int, k: int, dim: int, layout: Layout, shape: tuple[int, ...]) -> float:
        rows = self.wanted_rows[k]
        if rows is None or dim != 0 or layout.sbps[axis] != split(0):
            return super()._share_of(axis, k, dim, layout, shape)
        at = self.placement.coords[axis]
        return (rows.cuts[at + 1] - rows.cuts[at]) / max(1, shape[0])

    def _local_shape(self, k: int) -> list[int]:
        found, layout = super()._local_shape(k), self.choice.outputs[k]
        axis = split_axis(layout)
        if axis is not None and self._first is not None and k not in self._per_sequence:
            at = self.placement.coords[axis]
            found[0] = self._first.cuts[at + 1] - self._first.cuts[at]
        return found

    def _local_expr(self, slots_in: list[str], slots_out: list[str]) -> OpExpr:
        found = super()._local_expr(slots_in, slots_out)
        if found.flat:
            return found
        return OpExpr(found.info, found.attrs, found.inputs, found.outputs, None, True, found.rules)

    # Running ----------------------------------------------------------------------------------------------------------
    def _run(self, *args: Tensor | None) -> Any:
        parts = [self._part(k, a) for k, a in enumerate(args)]
        with other_draws(self._draws) if self._draws else nullcontext():
            made = EAGER.apply(self.local, parts, self.make_rule)
        return formed(self.expr, self._wrapped(made, args))

    def _part(self, k: int, a: Tensor | None) -> Tensor | None:
        if a is None:
            return None
        if a._meta.container is not LoDTensor:
            return local_part(a) if self.wanted[k] is None else super()._part(k, a)
        meta, source, target = a._meta, self.sources[k], self.choice.inputs[k]
        assert source is not None
        assert target is not None
        before, after = self.rows[k], self.wanted_rows[k]
        value = box_rows_of(a._value, self.shapes[k], source, target, before, after)
        axis = split_axis(target)
        lod: Any = self.lods[k] if axis is None or after is None else after.part(self.placement.coords[axis])
        local = new_tensor(value, meta_of_value(value, meta.place, len(lod)), [list(level) for level in lod])
        if value is a._value and meta.tracked:
            local._memory, local._meta = a._memory, local._meta.with_tracking
        local._meta = local._meta.with_grad if meta.grad else local._meta
        return local

    def _wrapped(self, made: Sequence[Tensor | None], args: Sequence[Tensor | None]) -> list[Tensor | None]:
        """The global tensors of which the results on the parts are this rank's parts."""
        inner = next((n for y in made if y is not None and (n := split_edge(y._node)[0]) is not None), None)
        node = None if inner is None else self._record(inner, args)
        found: list[Tensor | None] = []
        for j, y in enumerate(made):
            edge = None
            if node is not None and y is not None and y._node is not None:
                edge = node if len(node.rule.outputs) == 1 else Edge(node, y._node.index)
            found.append(None if y is None else self._output(j, y, edge))
        if node is not None:
            node.saved.rows = [None if f is None else f.__dict__.pop("_brought", f._rows) for f in found]
            node.saved.lods = [[] if y is None else y.lod for y in made]
        return found

    def _record(self, inner: Node, args: Sequence[Tensor | None]) -> Node:
        rule = self._rules.get(inner.rule)
        if rule is None:
            rule = self._rules[inner.rule] = SequenceRule(self, inner.rule)
        node = Node()
        node.rule, node.saved = rule, Saved(inner)
        node.next = tuple([a._node for i in rule.wrt if (a := args[i]) is not None])
        return node

    def _output(self, j: int, y: Tensor, edge: Any) -> Tensor:
        weighing, layout = self.weighing(j, y._meta), self.choice.outputs[j]
        z = global_tensor(y._value if weighing is None else weighing(y._value), self.meta(j, y._meta), (), edge)
        z._logical_shape = self.shape(j) or y.shape
        if z._meta.lod_level:
            z._lod = y._lod
        axis = split_axis(layout)
        made = self._first is not None or y._meta.lod_level > 0
        if axis is None or not made or y._meta.container is not LoDTensor:
            if -1 in z._logical_shape:
                z._logical_shape = y.shape
            return z
        rows = self._rows_of_output(j, y, layout, axis)
        if isinstance(rows, _Uneven):
            return self._gathered(z, y, layout, axis, rows)
        if rows is not None:
            z._meta, z._rows = layout.by_rows.meta(y._meta), rows
            z._logical_shape = (rows.cuts[-1], *z._logical_shape[1:])
        elif -1 in z._logical_shape and self._first is not None:
            z._logical_shape = (len(self._first.lod[0]) - 1, *z._logical_shape[1:])
        expected = layout.local_shape(z.shape)[0] if rows is None else np.diff(rows.cuts)[self.placement.coords[axis]]
        if y.shape[:1] != (expected,):
            raise PreconditionNotMetError(
                f"op {self.expr.type} (pack {self.expr.info.pack}): its rule sbp splits rows of output {j}, of which "
                f"this rank has {list(y.shape)}; expected {expected} rows"
            )
        return z

    def _gathered(self, z: Tensor, y: Tensor, layout: Layout, axis: int, rows: _Uneven) -> Tensor:
        """An output whose sequences are not even parts of all, whole on each rank along the axis."""
        counts = np.diff(rows.cuts).tolist()
        z._value = layout.placement.group(axis).all_gather(y._value, counts)
        z._meta, z._lod = layout.replaced(axis, broadcast).meta(y._meta), rows.lod
        z._logical_shape = (rows.cuts[-1], *z._logical_shape[1:])
        z._brought = Rows(rows.cuts)  # type: ignore[attr-defined]
        return z

    def _rows_of_output(self, j: int, y: Tensor, layout: Layout, axis: int) -> Rows | None:
        ranks = self.placement.shape[axis]
        source = self.lod_of.get(j)
        if source is not None and self.lods[source]:
            return rows_of(self.lods[source], ranks)
        if y._meta.lod_level:  # made by the kernel, from values perhaps
            lods = self.placement.group(axis).gather_facts(y.lod)
            whole, counts = joined(lods), [len(lod[0]) - 1 for lod in lods]
            if counts != [b - a for a, b in (balanced(sum(counts), ranks, r) for r in range(ranks))]:
                ends = np.cumsum([0, *(lod[-1][-1] for lod in lods)]).tolist()
                return _Uneven(tuple(ends), whole)  # type: ignore[arg-type]
            return rows_of(whole, ranks)
        assert self._first is not None
        if len(self._first.lod) > 1 and self.choice.signatures[axis].by_sequence is not None:
            # Rows may be of sequences of any level, which the kernel alone knows.
            counts = self.placement.group(axis).gather_facts(y.shape[0])
            return Rows(tuple(np.cumsum([0, *counts]).tolist()))
        return None if j in self._per_sequence else Rows(self._first.cuts)


class _Uneven(Rows):
    """Rows of sequences of which ranks have other numbers than an even split gives."""
