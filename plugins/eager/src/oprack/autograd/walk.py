"""The backward walk over the graph of recorded calls: `backward` and `grad`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from oprack.autograd.followers import in_pass
from oprack.autograd.starting_gradients import starting_gradients
from oprack.cache import Cache
from oprack.eager_tensor import Edge, Leaf, Node, Tensor, new_tensor, split_edge
from oprack.eager_tensor.from_above import FROM_ABOVE
from oprack.eager_tensor.meta import CPU
from oprack.errors import InvalidArgumentError, PreconditionNotMetError
from oprack.interpreter.eager import EAGER
from oprack.interpreter.modes import current_mode, enable_grad, no_grad
from oprack.interpreter.op_expr import OpExpr
from oprack.packs import op_for
from oprack.packs.manager import default_manager
from oprack.tensor import LoDTensor

# Generated calls hang on the expression, so one is kept for each number of gradients; dropped with the packs that the
# op came from.
_SUMS = Cache(256)


class Walk:
    """One walk from outputs back to leaves, or to the tensors whose gradients are requested.

    Args:
        inputs: Edges of these tensors; None for all leaves, into whose `grad` the gradients are then accumulated.
        create_graph: Whether gradients are recorded.
        retain_graph: Whether saved tensors remain for another walk.

    Attributes:
        captured: Gradients of the inputs, by edge.
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
        # The quick path neither captures gradients of requested tensors nor records them.
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
        """Count readers and deliver the starting gradients; returns the nodes that wait for no other."""
        starts = list(dict.fromkeys(split_edge(e)[0] for e in edges))
        self._count(starts)
        for edge, gradient in zip(edges, gradients, strict=True):
            self._arrive(edge, gradient)
        # A start that other starts lead to must wait for their gradients.
        return [n for n in starts if n not in self._uses]

    def _differentiate(self, node: Node, arrived: list[list[Tensor]]) -> Sequence[Tensor | None]:
        """Gradients of a call's inputs, in the order of its edges; () when none of them is needed."""
        quick = node.rule.quick if self._quick and len(arrived) == 1 and len(arrived[0]) == 1 else None
        if quick is not None and node.saved is not None and node.hooks is None:
            results: Sequence[Tensor | None] = quick(node, arrived[0], self._apply, self._plain)
        else:
            results = self._by_rule(node, arrived)
        # Frees activations during the walk, and makes a second walk fail with a message rather than return wrong sums.
        if results and not self.retain_graph:
            node.saved = None
        return results

    def _by_rule(self, node: Node, arrived: list[list[Tensor]]) -> Sequence[Tensor | None]:
        totals = [self._total(node, i, gs) for i, gs in enumerate(arrived)]
        if self._needed is not None and node not in self._needed:
            return ()
        if all([g is None for g in totals]):
            return ()
        if node.saved is None:
            if why := node.__dict__.get("let_go"):
                raise PreconditionNotMetError(f"{node.name} {why}")
            raise PreconditionNotMetError(
                f"backward runs a second time through {node.name}, whose saved tensors were let go of after the first; "
                "call backward(retain_graph=True) the first time"
            )
        return node.rule.run(node, totals, self._apply, self._plain, self.create_graph)

    def _pass_on(self, node: Node, results: Sequence[Tensor | None], ready: list[Any]) -> None:
        """Deliver each result along its edge; a target that waits for no other gradient becomes ready.

        Edges without a result are counted as well, since their targets wait for all readers.
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
        """Count how often each node is read, and find the nodes that lead to a requested input."""
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
        """The sum of the gradients that arrived, after hooks; captured if it is requested."""
        if not gradients:
            return None
        total = gradients[0] if len(gradients) == 1 else self._sum(gradients)
        if node.hooks is not None:
            # A copy of the list, since a hook may remove itself.
            for hook in list(node.hooks.get(index, {}).values()):
                replacement = hook(total)
                if replacement is not None:
                    total = replacement
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
            and meta.layout is None
            and all(g._meta is meta for g in gradients)
        ):
            # NumPy's sum, without the overhead of an op. The first addition allocates, since the gradients may be those
            # of the user's tensors; the others add in place to that new array.
            total = first._value + gradients[1]._value
            for g in gradients[2:]:
                total += g._value
            return new_tensor(total, meta, first._lod)
        result: Tensor = current_mode().interpreter.apply(_sum_expr(len(gradients)), gradients)
        return result

    def _end(self, leaf: Leaf, gradient: Tensor | None) -> None:
        """Accumulate the complete gradient of a leaf."""
        tensor = leaf.tensor()
        if gradient is None or tensor is None or self._inputs is not None:
            return
        if tensor._grad is not None:
            tensor._grad = self._sum([tensor._grad, gradient])
        elif self.create_graph or gradient._node is None:
            tensor._grad = gradient
        else:
            # A starting gradient may be part of another graph, to which `grad` must not refer without create_graph.
            tensor._grad = gradient.detach()
        if leaf.ready is not None:
            leaf.ready(tensor)


def _sum_expr(count: int) -> OpExpr:
    """The op that sums so many tensors."""
    info = default_manager().op_info(op_for("sum_of_all"))
    found: OpExpr | None = _SUMS[count]
    if found is None or found.info is not info:
        attrs = {} if info.checker is None else info.checker.check({})
        found = _SUMS[count] = OpExpr(info, attrs, (("X", count),), (("Out", (True,)),))
    return found


def _first_arrival(target: Any, gradient: Tensor) -> list[list[Tensor]]:
    """The lists of arrived gradients by output, when the first one arrives at the first output."""
    if type(target) is Leaf or len(target.rule.outputs) == 1:
        return [[gradient]]
    return [[gradient], *([] for _ in range(len(target.rule.outputs) - 1))]


def _leading_to(ends: Iterable[Any], nodes: Iterable[Node]) -> set[Any]:
    """The nodes from which a path leads to one of the ends."""
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
        outputs: The tensors to start from.
        gradients: A gradient for each; None stands for 1 and needs an output of one element.
        retain_graph: Whether saved tensors are retained for another walk.
        create_graph: Whether gradients are recorded, so that they can be differentiated; implies retain_graph.

    Raises:
        InvalidArgumentError: An output of several elements comes without its gradient, or a gradient has another shape.
        NotDifferentiableError: An op on the way has no gradient.
        PreconditionNotMetError: Nothing was recorded, or what was saved is gone or was changed in place.
    """
    starts = starting_gradients(outputs, gradients, "backward")
    walk = Walk(None, create_graph, retain_graph or create_graph)
    with enable_grad() if create_graph else no_grad():
        in_pass(lambda: walk.run([y._node for y in outputs], starts))


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    *,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool = False,
) -> list[Tensor | None]:
    """Gradients of sum(outputs * grad_outputs) with respect to inputs; the `grad` of tensors does not change.

    Args:
        outputs: A tensor or a list.
        inputs: A tensor or a list.
        grad_outputs: A tensor or a list, as outputs; None is 1 for an output of one element.
        retain_graph: Whether saved tensors are retained for another walk; default: as create_graph.
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
    results = [walk.captured.get(split_edge(x._node)) for x in xs]
    for k, g in enumerate(results):
        if g is None and not allow_unused:
            raise PreconditionNotMetError(
                f"grad: the outputs do not depend on input {k} ({xs[k].describe()}); pass allow_unused=True to get None"
            )
    return results


def _listed(one_or_many: Any) -> list[Any]:
    return list(one_or_many) if isinstance(one_or_many, list | tuple) else [one_or_many]


FROM_ABOVE["backward"] = backward
