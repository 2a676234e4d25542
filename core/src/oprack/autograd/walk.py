"""The walk back over recorded calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from oprack.autograd.starting_gradients import starting_gradients
from oprack.autograd.summation import sum_expr
from oprack.errors import InvalidArgumentError, PreconditionNotMetError
from oprack.interpreter.eager import EAGER
from oprack.interpreter.modes import current_mode, enable_grad, no_grad
from oprack.tensor import LoDTensor
from oprack.tensor.eager_tensor import Tensor, new_tensor
from oprack.tensor.meta import CPU
from oprack.tensor.node import Edge, Leaf, Node, split_edge


class Walk:
    """One walk from outputs back to leaves, or to the tensors whose gradients are asked for.

    inputs: edges of these; None = all leaves, whose `grad` then grows. captured: gradients of the inputs, by edge.
    """

    def __init__(self, inputs: Sequence[Any] | None, create_graph: bool, retain_graph: bool) -> None:
        self.create_graph, self.retain_graph = create_graph, retain_graph
        self.captured: dict[tuple[Any, int], Any] = {}
        self._inputs = None if inputs is None else {split_edge(e) for e in inputs}
        self._waiting: dict[Any, list[list[Tensor]]] = {}
        self._uses: dict[Any, int] = {}
        self._needed: set[Any] | None = None
        self._apply: Callable[..., Any] = EAGER.apply
        self._plain = self._quick = False

    def run(self, edges: Sequence[Any], gradients: Sequence[Tensor]) -> None:
        """Walk from these edges, each with its gradient."""
        interpreter = current_mode().interpreter
        self._apply, self._plain = interpreter.apply, interpreter is EAGER
        # gradients that somebody asked for by name, or that are recorded, need the steps that the quick way leaves out
        self._quick = self._plain and self._inputs is None and not self.create_graph
        ready, waiting = self._start(edges, gradients), self._waiting
        while ready:
            node = ready.pop()
            arrived = waiting.pop(node, None)
            if type(node) is not Leaf:
                self._pass_on(node, () if arrived is None else self._differentiate(node, arrived), ready)
            elif arrived is not None:
                self._end(node, self._total(node, 0, arrived[0]))

    def _start(self, edges: Sequence[Any], gradients: Sequence[Tensor]) -> list[Any]:
        """Count readers and hand out the first gradients; returns the nodes that wait for no other."""
        starts = list(dict.fromkeys(split_edge(e)[0] for e in edges))
        self._count(starts)
        for edge, gradient in zip(edges, gradients, strict=True):
            self._arrive(edge, gradient)
        # a start that other starts lead to as well waits for what they send it
        return [n for n in starts if n not in self._uses]

    def _differentiate(self, node: Node, arrived: list[list[Tensor]]) -> Sequence[Tensor | None]:
        """Gradients of what a call read, in the order of its edges; nothing when none of them is wanted."""
        quick = node.rule.quick if self._quick and len(arrived) == 1 and len(arrived[0]) == 1 else None
        if quick is not None and node.saved is not None and node.hooks is None:
            results: Sequence[Tensor | None] = quick(node, arrived[0], self._apply, self._plain)
        else:
            results = self._by_rule(node, arrived)
        # frees activations while the walk goes on, and lets a second walk fail with a message instead of a wrong sum
        if results and not self.retain_graph:
            node.saved = None
        return results

    def _by_rule(self, node: Node, arrived: list[list[Tensor]]) -> Sequence[Tensor | None]:
        totals = [self._total(node, i, gs) for i, gs in enumerate(arrived)]
        if self._needed is not None and node not in self._needed:
            return ()
        if all([g is None for g in totals]):
            return ()
        return node.rule.run(node, totals, self._apply, self._plain, self.create_graph)

    def _pass_on(self, node: Node, results: Sequence[Tensor | None], ready: list[Any]) -> None:
        """Hand each result to where its edge leads; what waits for no other gradient is ready.

        Edges are counted off without a result, too: those behind them wait for all their readers.
        """
        uses, waiting = self._uses, self._waiting
        for edge, gradient in zip(node.next, results or (None,) * len(node.next), strict=False):
            if edge is None:
                continue
            target = edge.node if type(edge) is Edge else edge
            if gradient is not None:
                if target is not edge:
                    self._arrive(edge, gradient)
                elif target in waiting:
                    waiting[target][0].append(gradient)
                else:
                    waiting[target] = _first_arrival(target, gradient)
            left = uses[target] - 1
            uses[target] = left
            if not left:
                ready.append(target)

    def _count(self, starts: list[Any]) -> None:
        """How often each node is read, and which nodes lead to an input that is asked for."""
        uses, stack, order = self._uses, list(starts), list[Any]()
        # A start that another start leads to is counted as well, but walked once.
        seen = set(starts)
        while stack:
            node = stack.pop()
            if type(node) is Leaf:
                continue
            order.append(node)
            for edge in node.next:
                if edge is None:
                    continue
                target = edge.node if type(edge) is Edge else edge
                if target in uses:
                    uses[target] += 1
                else:
                    uses[target] = 1
                    if target not in seen:
                        seen.add(target)
                        stack.append(target)
        if self._inputs is not None:
            self._needed = _leading_to([node for node, _ in self._inputs], order)

    def _arrive(self, edge: Any, gradient: Tensor) -> None:
        node, index = split_edge(edge)
        waiting = self._waiting.get(node)
        if waiting is None:
            count = 1 if type(node) is Leaf else len(node.rule.outputs)
            waiting = self._waiting[node] = [[] for _ in range(count)]
        waiting[index].append(gradient)

    def _total(self, node: Node | Leaf, index: int, gradients: list[Tensor]) -> Tensor | None:
        """The sum of what arrived, after hooks; kept when it is asked for."""
        if not gradients:
            return None
        total = gradients[0] if len(gradients) == 1 else self._sum(gradients)
        if node.hooks is not None:
            # A copy, since a hook may remove itself.
            for hook in list(node.hooks.get(index, {}).values()):
                changed = hook(total)
                if changed is not None:
                    total = changed
        if self._inputs is not None and (node, index) in self._inputs:
            self.captured[node, index] = total
        return total

    def _sum(self, gradients: list[Tensor]) -> Tensor:
        first = gradients[0]
        meta = first._meta
        if (
            not self.create_graph
            and meta.container is LoDTensor
            and meta.place == CPU
            and all(g._meta is meta for g in gradients)
        ):
            # NumPy's sum without the op around it; a new array, since the gradients may be somebody's.
            total = first._value + gradients[1]._value
            for g in gradients[2:]:
                # The sum so far is this function's own, so it may grow in place.
                total += g._value
            return new_tensor(total, meta, first._lod)
        found: Tensor = current_mode().interpreter.apply(sum_expr(len(gradients)), gradients)
        return found

    def _end(self, leaf: Leaf, gradient: Tensor | None) -> None:
        """The gradient of a leaf is complete."""
        tensor = leaf.tensor()
        if gradient is None or tensor is None or self._inputs is not None:
            return
        if tensor._grad is not None:
            tensor._grad = self._sum([tensor._grad, gradient])
        elif self.create_graph or gradient._node is None:
            tensor._grad = gradient
        else:
            # The gradient may carry a record of its own, which nobody asked for without create_graph.
            tensor._grad = gradient.detach()


def _first_arrival(target: Any, gradient: Tensor) -> list[list[Tensor]]:
    """What waits for a node when the first gradient of its first output has come: a list for each of its outputs."""
    if type(target) is Leaf or len(target.rule.outputs) == 1:
        return [[gradient]]
    return [[gradient], *([] for _ in range(len(target.rule.outputs) - 1))]


def _leading_to(ends: Iterable[Any], nodes: Iterable[Node]) -> set[Any]:
    """Those of the nodes from which an edge leads, over others, to one of the ends."""
    readers: dict[Any, list[Any]] = {}
    for node in nodes:
        for edge in node.next:
            if edge is not None:
                readers.setdefault(split_edge(edge)[0], []).append(node)
    leading: set[Any] = set()
    pending = list(ends)
    while pending:
        for reader in readers.pop(pending.pop(), ()):
            if reader not in leading:
                leading.add(reader)
                pending.append(reader)
    return leading


def backward(
    outputs: Sequence[Tensor],
    gradients: Sequence[Any] | None = None,
    retain_graph: bool = False,
    create_graph: bool = False,
) -> None:
    """Add the gradients of sum(outputs * gradients) to `grad` of all leaves that the outputs depend on.

    Args:
        outputs: The tensors to begin at.
        gradients: A gradient for each; None is 1 for an output of one element.
        retain_graph: Whether what was saved is kept for another walk.
        create_graph: Whether gradients are recorded, so that they can be differentiated; implies retain_graph.

    Raises:
        InvalidArgumentError: An output of several elements comes without its gradient, or a gradient has another shape.
        NotDifferentiableError: An op on the way has no gradient.
        PreconditionNotMetError: Nothing was recorded, or what was saved is gone or was changed in place.
    """
    starts = starting_gradients(outputs, gradients, "backward")
    walk = Walk(None, create_graph, retain_graph or create_graph)
    with enable_grad() if create_graph else no_grad():
        walk.run([y._node for y in outputs], starts)


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    *,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool = False,
) -> list[Tensor | None]:
    """Gradients of sum(outputs * grad_outputs) with respect to inputs; what tensors have as `grad` stays as it is.

    Args:
        outputs: A tensor or a list.
        inputs: A tensor or a list.
        grad_outputs: A tensor or a list, as outputs; None is 1 for an output of one element.
        retain_graph: Whether what was saved is kept for another walk; default: as create_graph.
        create_graph: Whether the results may be differentiated again.
        allow_unused: Whether an input that the outputs do not depend on gets None instead of an error.

    Returns:
        A tensor for each input, of its shape and dtype.

    Raises:
        InvalidArgumentError: An argument is no tensor, an output of several elements comes without its gradient, or an
            input is not used.
        NotDifferentiableError: An op on the way has no gradient.
        PreconditionNotMetError: Nothing was recorded, or what was saved is gone or was changed in place.
    """
    ys, xs = _listed(outputs), _listed(inputs)
    gs = None if grad_outputs is None else _listed(grad_outputs)
    for k, x in enumerate(xs):
        if not isinstance(x, Tensor) or x._node is None:
            what = x.describe() if isinstance(x, Tensor) else type(x).__name__
            raise InvalidArgumentError(f"grad: input {k} is {what}; expected a tensor with requires_grad=True")
    starts = starting_gradients(ys, gs, "grad")
    walk = Walk([x._node for x in xs], create_graph, create_graph if retain_graph is None else retain_graph)
    with enable_grad() if create_graph else no_grad():
        walk.run([y._node for y in ys], starts)
    found = [walk.captured.get(split_edge(x._node)) for x in xs]
    for k, g in enumerate(found):
        if g is None and not allow_unused:
            raise PreconditionNotMetError(
                f"grad: the outputs do not depend on input {k} ({xs[k].describe()}); pass allow_unused=True to get None"
            )
    return found


def _listed(one_or_many: Any) -> list[Any]:
    return list(one_or_many) if isinstance(one_or_many, list | tuple) else [one_or_many]
