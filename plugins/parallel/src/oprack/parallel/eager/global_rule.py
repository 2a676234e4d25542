"""GlobalRule: gradients of calls with global tensors, from those of the calls that ran on the parts.

No rule of its own says how gradients lie: an argument that the signature split has a gradient split alike; one that was
a partial sum has a whole one; of one that was whole, each rank has a summand if the ranks computed different things.

Gradients that are differentiated again are recorded on the parts, as a graph of this rank alone, and around it there is
one node between global tensors, whose gradients are found in the same way: PartsRule, for any order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from oprack.autograd.walk import grad
from oprack.eager_tensor import Edge, Leaf, Node, Tensor, new_tensor
from oprack.eager_tensor.meta import meta_of_value
from oprack.errors import UnimplementedError
from oprack.interpreter.eager import EAGER
from oprack.parallel.eager.global_tensor import box_part, boxed, everywhere, global_tensor, placed, relaid
from oprack.parallel.eager.sequences import Rows
from oprack.parallel.layouts.layout import Layout, grad_layout, input_grad_layout, layout_of, output_grad_layout
from oprack.tensor import SelectedRows

if TYPE_CHECKING:
    from oprack.parallel.eager.global_plan import Plan


@dataclass(frozen=True, eq=False)
class Part:
    """This rank's part of what goes into, or comes out of, a graph on parts.

    Attributes:
        tensor: The part.
        layout: How the parts of the ranks lie.
        shape: The logical shape.
        rows: How rows lie that are split by sequences.
    """

    tensor: Tensor
    layout: Layout
    shape: tuple[int, ...]
    rows: Rows | None = None


@dataclass(frozen=True, eq=False)
class Given(Part):
    """A part that goes into a graph on parts; its tensor is a leaf of it.

    Attributes:
        edge: Where the gradient of the global tensor goes, of which it is a part.
        source: The layout of that tensor, which its gradient gets.
        source_rows: How rows lie there.
    """

    edge: Any = None
    source: Layout | None = None
    source_rows: Rows | None = None


class GlobalRule:
    """How the gradients of a call's arguments are computed, as BackwardRule for calls of one process.

    Args:
        plan: What the call did.
        inner: The rule of the call that ran on the parts.
    """

    quick: Callable[..., Any] | None = None

    def __init__(self, plan: Plan, inner: Any) -> None:
        self.plan, self.inner = plan, inner
        self.name = f"op {plan.expr.type}"
        self.outputs: list[int] = inner.outputs
        self.wrt: list[int] = inner.wrt
        self.saved: list[tuple[str, int, bool]] = inner.saved
        self._arriving = [output_grad_layout(plan.choice.outputs[j]) for j in self.outputs]
        # Those that are differentiated are there.
        read = [layout for i in self.wrt if (layout := plan.choice.inputs[i]) is not None]
        self._leaving = [input_grad_layout(layout, plan.choice.splits) for layout in read]

    def run(
        self, node: Node, gradients: Sequence[Any], apply: Callable[..., Any], plain: bool, create_graph: bool
    ) -> Sequence[Any]:
        """Gradients of the arguments in `wrt`, each in the layout that its argument had; see BackwardRule.run."""
        if create_graph:
            return self._recorded(node, self._inner(node), gradients, apply)
        parts = [None if g is None else self._part(k, g) for k, g in enumerate(gradients)]
        found = self.inner.run(self._inner(node), parts, EAGER.apply, True, False)
        return [None if g is None else self._given_back(k, g) for k, g in enumerate(found)]

    def _inner(self, node: Node) -> Node:
        """The call on the parts."""
        inner = Node()
        # Without what was lent: calls in place give an output a new value, and what was saved of it stays.
        inner.rule, inner.shapes, inner.versions = self.inner, node.shapes, node.versions
        inner.saved = tuple([self.plan.again(x) for x in node.saved])
        return inner

    def _part(self, k: int, gradient: Tensor) -> Tensor:
        """This rank's part of the gradient of an output, as the call on the parts had it."""
        layout, target = layout_of(gradient._meta), self._arriving[k]
        if layout is None:  # a tensor that the user passed to backward, the same on each rank
            layout = everywhere(target)
        value = box_part(gradient._value, gradient.shape, layout, target)
        if self._is_weighted(k) and not isinstance(value, SelectedRows):
            value = value * np.asarray(self.plan.share, value.dtype)
        return new_tensor(value, meta_of_value(value, gradient._meta.place))

    def _is_weighted(self, k: int) -> bool:
        """Whether an output was this rank's share of a mean."""
        return self.plan.share != 1.0 and self.plan.choice.outputs[self.outputs[k]].is_partial

    def _given_back(self, k: int, gradient: Tensor) -> Tensor:
        i = self.wrt[k]
        leaving, source = self._leaving[k], self.plan.sources[i]
        assert source is not None
        made = global_tensor(gradient._value, leaving.meta(gradient._meta.without_grad), self.plan.shapes[i])
        return boxed(made, grad_layout(source, leaving))

    # Gradients that are differentiated again --------------------------------------------------------------------------
    def _recorded(
        self,
        node: Node,
        inner: Node,
        gradients: Sequence[Any],
        apply: Callable[..., Any],
        rows: Sequence[Rows | None] = (),
        lods: Sequence[Any] = (),
    ) -> Sequence[Any]:
        """As `run`, with a node behind what is found.

        Args:
            node: The call.
            inner: The call on the parts.
            gradients: Those of the outputs.
            apply: Calls ops, and records them.
            rows: How the rows of each output lie.
            lods: The offsets of this rank's part of each output.

        Returns:
            The gradients.
        """
        plan = self.plan
        op = next((s.via for s in plan.choice.signatures if s.via not in ("", plan.expr.type)), None)
        if op is not None:
            raise UnimplementedError(
                f"{self.name}: it was computed on parts by op {op}, whose ranks send each other what its gradients "
                "need, and those gradients are not differentiated again; give its inputs another layout first, such "
                'as x.to_global(sbp="broadcast")'
            )
        arrived: list[Given | None] = []
        for k, g in enumerate(gradients):
            j = self.outputs[k]
            lies, lod = (rows[j], lods[j]) if rows else (None, ())
            arrived.append(None if g is None else _arrived(g, self._arriving[k], lies, lod))
        starts = [
            None if a is None else a.tensor * plan.share if self._is_weighted(k) else a.tensor
            for k, a in enumerate(arrived)
        ]
        inner, given = self._leaves(node, inner)
        found = self.inner.run(inner, starts, apply, False, True)
        made = [None if g is None else Part(g, *self._lies(k)) for k, g in enumerate(found)]
        splits = plan.choice.splits
        return _given_back(self.name, splits, [*given, *(a for a in arrived if a is not None)], made, given)

    def _lies(self, k: int) -> tuple[Layout, tuple[int, ...], Rows | None]:
        """(layout, logical shape, rows) in which a gradient is computed on the parts."""
        return self._leaving[k], self.plan.shapes[self.wrt[k]], None

    def _source_rows(self, i: int) -> tuple[Rows | None, Rows | None]:
        """How the rows of an argument lie where it is read, and where it comes from."""
        return None, None

    def _leaves(self, node: Node, inner: Node) -> tuple[Node, list[Given]]:
        """The call on the parts, always the same, and its arguments, made leaves of its graph."""
        known: tuple[Node, list[Given]] | None = node.__dict__.get("given")
        if known is not None:
            return known
        plan, saved = self.plan, {i: k for k, (side, i, whole) in enumerate(self.saved) if side == "in" and whole}
        found: list[Given] = []
        for i, edge in zip(self.wrt, node.next, strict=True):
            tensor = inner.saved[saved[i]] if i in saved else new_tensor(None, self.inner.bound.metas[i].with_grad)
            tensor._node = Leaf(tensor)
            read, source = self._source_rows(i)
            layout = plan.choice.inputs[i]
            assert layout is not None
            found.append(Given(tensor, layout, plan.shapes[i], read, edge, plan.sources[i], source))
        inner.next = tuple([g.tensor._node for g in found])
        node.given = inner, found  # type: ignore[attr-defined]  # seldom, so no slot
        return inner, found


class PartsRule:
    """Gradients of what a graph on parts gave, by that graph.

    Ranks that compute different things may each have a copy of a result, such as the gradient of a partial sum. The
    gradient of that result then counts on one of them.

    Args:
        name: Of the call, for messages.
        splits: For each axis of the placement, whether ranks compute different things.
        count: Number of results.
    """

    quick: Callable[..., Any] | None = None

    def __init__(self, name: str, splits: Sequence[bool], count: int) -> None:
        self.name, self._splits, self.outputs = name, splits, list(range(count))

    def run(
        self, node: Node, gradients: Sequence[Any], apply: Callable[..., Any], plain: bool, create_graph: bool
    ) -> Sequence[Any]:
        """The gradients of what was given; see Rule.run."""
        given: list[Given]
        given, results = node.saved
        chosen = [(part, g) for part, g in zip(results, gradients, strict=True) if g is not None]
        arrived = [_arrived(g, self._arriving(part.layout), part.rows, part.tensor._lod) for part, g in chosen]
        found = grad(
            [part.tensor for part, _ in chosen],
            [g.tensor for g in given],
            [a.tensor for a in arrived],
            retain_graph=True,
            create_graph=create_graph,
            allow_unused=True,
        )
        leaving = [input_grad_layout(g.layout, self._splits) for g in given]
        made = [
            None if g is None else Part(g, lies, one.shape, one.rows)
            for g, lies, one in zip(found, leaving, given, strict=True)
        ]
        return _given_back(self.name, self._splits, [*given, *arrived], made, given)

    def _arriving(self, layout: Layout) -> Layout:
        """The layout in which the gradient of a result is needed."""
        pairs = zip(output_grad_layout(layout).sbps, layout.sbps, self._splits, strict=True)
        return layout.placement.layout(["P" if s.kind == "B" and split else g for g, s, split in pairs])


def _arrived(gradient: Tensor, target: Layout, rows: Rows | None, lod: Any) -> Given:
    """This rank's part of a gradient, as a leaf of a graph on parts."""
    if gradient._meta.layout is None:  # a tensor that the user passed to backward, the same on each rank
        gradient = placed(gradient, gradient._value, everywhere(target), gradient.shape, from_whole=True)
    if gradient.is_sparse:
        gradient = _dense(gradient)
    found = relaid(gradient, target, rows)
    value = found._value
    tensor = new_tensor(value, meta_of_value(value, found._meta.place, len(lod)), lod)
    if found._meta.grad:
        tensor._meta = tensor._meta.with_grad
        tensor._node = Leaf(tensor)
    return Given(tensor, target, found.shape, rows, found._node, target, rows)


def _dense(x: Tensor) -> Tensor:
    layout = layout_of(x._meta)
    assert layout is not None
    value = x._value.to_dense()
    return global_tensor(value, layout.meta(meta_of_value(value, x._meta.place)), x.shape)


def _given_back(
    name: str, splits: Sequence[bool], given: Iterable[Given], made: Sequence[Part | None], wrt: Sequence[Given]
) -> list[Tensor | None]:
    """Global tensors of gradients that were computed on parts, each in the layout of what it is the gradient of.

    Args:
        name: Of the call, for messages.
        splits: For each axis of the placement, whether ranks compute different things.
        given: What went into the graph on parts.
        made: The gradients.
        wrt: What they are the gradients of.

    Returns:
        The tensors.
    """
    results = [part for part in made if part is not None and part.tensor._node is not None]
    node = None
    if results:
        node = Node()
        node.rule, leaves = PartsRule(name, splits, len(results)), [g for g in given if g.tensor._node is not None]
        node.saved, node.next = (leaves, results), tuple([g.edge for g in leaves])
    found: list[Tensor | None] = []
    for part, of in zip(made, wrt, strict=True):
        if part is None or of.source is None:
            found.append(None)
            continue
        lies = part.layout if part.rows is None else part.layout.by_rows
        plain, edge = meta_of_value(part.tensor._value, part.tensor._meta.place), None
        if node is not None and part.tensor._node is not None:
            plain, edge = plain.with_grad, node if len(results) == 1 else Edge(node, results.index(part))
        z = global_tensor(part.tensor._value, lies.meta(plain), part.shape, edge)
        z._rows = part.rows
        found.append(relaid(z, grad_layout(of.source, part.layout), of.source_rows))
    return found
