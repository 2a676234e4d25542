"""CustomRule: gradients computed by a Python function, for jitted programs and copies between places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from oprack.errors import PreconditionNotMetError, UnimplementedError
from oprack.tensor.eager_tensor import Tensor
from oprack.tensor.node import Edge, Node


class CustomRule:
    """The counterpart of BackwardRule for recorded calls that are not ops.

    Args:
        name: Name of the call, for messages.
        count: Number of outputs.
        function: Called with the node's saved values and the gradients of the outputs (None where none arrived);
            returns those of the inputs.
    """

    quick: Callable[..., Any] | None = None

    def __init__(self, name: str, count: int, function: Callable[[Any, Sequence[Any]], Sequence[Any]]) -> None:
        self.name, self.outputs, self._function = name, list(range(count)), function

    def run(
        self, node: Node, gradients: Sequence[Any], apply: Callable[..., Any], plain: bool, create_graph: bool
    ) -> Sequence[Any]:
        """Compute the gradients of the inputs; raises UnimplementedError if they would have to be recorded."""
        if create_graph:
            raise UnimplementedError(
                f"{self.name}: gradients of its gradients are not recorded; call the function itself instead"
            )
        if node.saved is None:
            raise PreconditionNotMetError(
                f"backward runs a second time through {self.name}, whose saved values were let go of after the first; "
                "call backward(retain_graph=True) the first time"
            )
        saved, inputs, versions = node.saved
        overwritten = next((x for x, v in zip(inputs, versions, strict=True) if x._version != v), None)
        if overwritten is not None or node.overwritten:
            what = f"input {overwritten.describe()}" if overwritten is not None else "result"
            by = overwritten._written_by if overwritten is not None else next(iter(node.overwritten.values()))
            raise PreconditionNotMetError(
                f"the gradient of {self.name} may need its {what}, which was changed in place since by {by}; change it "
                "after backward(), or change a copy (x.clone())"
            )
        return self._function(saved, gradients)


def attach(rule: CustomRule, inputs: Sequence[Tensor], outputs: Sequence[Tensor], saved: Any) -> None:
    """Record a call, so that gradients flow from its outputs back to its inputs, which must require them."""
    node = Node()
    node.rule, node.saved = rule, (saved, tuple(inputs), tuple([x._version for x in inputs]))
    node.next = tuple([x._node for x in inputs])
    for i, y in enumerate(outputs):
        y._meta = y._meta.with_grad
        y._node = node if len(outputs) == 1 else Edge(node, i)
