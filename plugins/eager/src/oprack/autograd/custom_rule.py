"""CustomRule: gradients computed by a Python function, for PyLayers and copies between places and ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from oprack.autograd.unchanged import check_inputs, check_outputs
from oprack.eager_tensor import Edge, Node, Tensor, lend
from oprack.errors import UnimplementedError


class CustomRule:
    """The counterpart of BackwardRule for recorded calls that are not ops.

    Args:
        name: Name of the call, for messages.
        count: Number of outputs.
        function: Called with the node's saved values and the gradients of the outputs (None where none arrived);
            returns those of the inputs.
        again: Whether the function makes calls that are recorded where gradients are to be differentiated.
    """

    def __init__(
        self, name: str, count: int, function: Callable[[Any, Sequence[Any]], Sequence[Any]], again: bool = False
    ) -> None:
        self.name, self.outputs, self._function, self._again = name, list(range(count)), function, again

    def run(
        self, node: Node, gradients: Sequence[Any], apply: Callable[..., Any], plain: bool, create_graph: bool
    ) -> Sequence[Any]:
        """Compute the gradients of the inputs; raises UnimplementedError if they have to be recorded and can't be."""
        if create_graph and not self._again:
            raise UnimplementedError(
                f"{self.name}: gradients of its gradients are not recorded; call the function itself instead"
            )
        return self.quick(node, gradients, apply, plain)

    def quick(self, node: Node, gradients: Sequence[Any], apply: Callable[..., Any], plain: bool) -> Sequence[Any]:
        """As `run`, without create_graph."""
        saved, versions = node.saved
        check_inputs(self.name, versions)
        check_outputs(node, self.outputs)
        return self._function(saved, gradients)


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
