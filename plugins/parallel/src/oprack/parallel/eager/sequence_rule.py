"""SequenceRule: gradients of calls whose arguments or outputs are split by sequences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from oprack.eager_tensor import Tensor, new_tensor
from oprack.eager_tensor.meta import meta_of_value
from oprack.interpreter.eager import EAGER
from oprack.parallel.eager.global_rule import GlobalRule
from oprack.parallel.eager.global_tensor import global_tensor
from oprack.parallel.eager.sequences import Rows, box_rows_of, split_axis
from oprack.parallel.layouts.layout import Layout, grad_layout, layout_of
from oprack.tensor import SelectedRows

if TYPE_CHECKING:
    from oprack.eager_tensor import Node
    from oprack.parallel.eager.sequence_call import SequencePlan


class Saved:
    """What a gradient reads of a call: that on the parts, and how the rows of its outputs lie."""

    __slots__ = ("inner", "lods", "rows")

    def __init__(self, inner: Node) -> None:
        self.inner = inner
        self.rows: list[Rows | None] = []
        self.lods: list[Any] = []


class SequenceRule(GlobalRule):
    """As GlobalRule, for calls whose arguments or outputs are split by sequences."""

    plan: SequencePlan

    def run(
        self, node: Node, gradients: Sequence[Any], apply: Callable[..., Any], plain: bool, create_graph: bool
    ) -> Sequence[Any]:
        saved: Saved = node.saved
        if create_graph:
            return self._recorded(node, saved.inner, gradients, apply, saved.rows, saved.lods)
        parts = [
            None if g is None else self._part_by_rows(k, g, saved.rows[j], saved.lods[j])
            for k, (j, g) in enumerate(zip(self.outputs, gradients, strict=True))
        ]
        found = self.inner.run(saved.inner, parts, EAGER.apply, True, False)
        return [None if g is None else self._given_back(k, g) for k, g in enumerate(found)]

    def _inner(self, node: Node) -> Node:
        saved: Saved = node.saved
        return saved.inner

    def _lies(self, k: int) -> tuple[Layout, tuple[int, ...], Rows | None]:
        layout, shape, _ = super()._lies(k)
        return layout, shape, _cuts_in(layout, self.plan.wanted_rows[self.wrt[k]])

    def _source_rows(self, i: int) -> tuple[Rows | None, Rows | None]:
        plan = self.plan
        read, source = plan.choice.inputs[i], plan.sources[i]
        return _cuts_in(read, plan.wanted_rows[i]), _cuts_in(source, plan.rows[i])

    def _part_by_rows(self, k: int, gradient: Tensor, rows: Rows | None, lod: Any) -> Tensor:
        layout, target = layout_of(gradient._meta), self._arriving[k]
        if layout is None:
            layout = target.placement.layout(["B"] * len(target.sbps))
        dense = gradient._value.to_dense() if isinstance(gradient._value, SelectedRows) else gradient._value
        value = box_rows_of(dense, gradient.shape, layout, target, gradient._rows, rows)
        plan = self.plan
        if plan.share != 1.0 and plan.choice.outputs[self.outputs[k]].is_partial:
            value = value * np.asarray(plan.share, value.dtype)
        return new_tensor(value, meta_of_value(value, gradient._meta.place, len(lod)), lod)

    def _given_back(self, k: int, gradient: Tensor) -> Tensor:
        i, plan = self.wrt[k], self.plan
        leaving, source, shape = self._leaving[k], plan.sources[i], plan.shapes[i]
        assert source is not None
        if isinstance(gradient._value, SelectedRows):
            return super()._given_back(k, gradient)
        target = grad_layout(source, leaving)
        before, after = plan.wanted_rows[i], plan.rows[i]
        after, before = _cuts_in(target, after), _cuts_in(leaving, before)
        value = box_rows_of(gradient._value, shape, leaving, target, before, after)
        if after is not None:
            target = target.by_rows
        found = global_tensor(value, target.meta(meta_of_value(value, gradient._meta.place)), shape)
        found._rows = after
        return found


def _cuts_in(layout: Layout | None, rows: Rows | None) -> Rows | None:
    """How rows lie in a layout, without offsets; None where it does not split them."""
    return None if rows is None or layout is None or split_axis(layout) is None else Rows(rows.cuts)
