"""CustomRule: gradients computed by a Python function, for jitted programs and copies between places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from oprack.eager_tensor import Edge, Node, Tensor, lend
from oprack.errors import PreconditionNotMetError, UnimplementedError


class CustomRule:
    """The counterpart of BackwardRule for recorded calls that are not ops.

    Args:
        name: Name of the call, for messages.
        count: Number of outputs.
        function: Called with the node's saved values and the gradients of the outputs (None where none arrived);
            returns those of the inputs.
        needed: Positions of the outputs that the function may read, which may not change in place before; None: all.
    """

    def __init__(
        self,
        name: str,
        count: int,
        function: Callable[[Any, Sequence[Any]], Sequence[Any]],
        needed: Sequence[int] | None = None,
    ) -> None:
        self.name, self.outputs, self._function = name, list(range(count)), function
        self._needed = set(self.outputs if needed is None else needed)

    def run(
        self, node: Node, gradients: Sequence[Any], apply: Callable[..., Any], plain: bool, create_graph: bool
    ) -> Sequence[Any]:
        """Compute the gradients of the inputs; raises UnimplementedError if they would have to be recorded."""
        if create_graph:
            raise UnimplementedError(
                f"{self.name}: gradients of its gradients are not recorded; call the function itself instead"
            )
        return self.quick(node, gradients, apply, plain)

    def quick(self, node: Node, gradients: Sequence[Any], apply: Callable[..., Any], plain: bool) -> Sequence[Any]:
        """As `run`, without create_graph."""
        if node.saved is None:
            raise PreconditionNotMetError(
                f"backward runs a second time through {self.name}, whose saved values were let go of after the first; "
                "call backward(retain_graph=True) the first time"
            )
        saved, versions = node.saved
        for x, version in versions:
            if x._version != version:
                raise self._overwritten(f"input {x.describe()}", x._written_by)
        for i in self._needed & node.lent.keys() if node.lent else ():
            if (writer := node.overwriter(i)) is not None:
                raise self._overwritten(f"output {i}", writer)
        return self._function(saved, gradients)

    def _overwritten(self, what: str, by: str) -> PreconditionNotMetError:
        return PreconditionNotMetError(
            f"the gradient of {self.name} needs its {what}, which was changed in place since by {by}; use the "
            "operation that makes a new tensor, change it after backward(), or change a copy (x.clone())"
        )


def attach(rule: CustomRule, inputs: Sequence[Tensor], outputs: Sequence[Tensor], saved: Any) -> None:
    """Record a call, so that gradients flow from its outputs back to its inputs, which must require them.

    Args:
        rule: How its gradients are computed.
        inputs: Its inputs.
        outputs: Its outputs.
        saved: What the rule's function gets.
    """
    node = Node()
    node.rule, node.saved = rule, (saved, [(x, x._version) for x in inputs])
    node.next = tuple([x._node for x in inputs])
    for i, y in enumerate(outputs):
        y._meta = y._meta.with_grad
        y._node = node if len(outputs) == 1 else Edge(node, i)
        if y._memory is not None:
            lend(y._node, y._memory)
