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
        recorded: The same as the function, for gradients that are recorded to be differentiated again; None: they
            can't be.
    """

    def __init__(
        self,
        name: str,
        count: int,
        function: Callable[[Any, Sequence[Any]], Sequence[Any]],
        needed: Sequence[int] | None = None,
        recorded: Callable[[Any, Sequence[Any]], Sequence[Any]] | None = None,
    ) -> None:
        self.name, self.outputs, self._function, self._recorded = name, list(range(count)), function, recorded
        self._needed = set(self.outputs if needed is None else needed)

    def run(
        self, node: Node, gradients: Sequence[Any], apply: Callable[..., Any], plain: bool, create_graph: bool
    ) -> Sequence[Any]:
        """Compute the gradients of the inputs; raises UnimplementedError if they can't be recorded but have to be."""
        if create_graph and self._recorded is None:
            raise UnimplementedError(
                f"{self.name}: gradients of its gradients are not recorded; call the function itself instead"
            )
        return self.quick(node, gradients, apply, plain, self._recorded if create_graph else None)

    def quick(
        self, node: Node, gradients: Sequence[Any], apply: Callable[..., Any], plain: bool, recorded: Any = None
    ) -> Sequence[Any]:
        """As `run`, without create_graph; `recorded` computes in place of the function."""
        if node.saved is None:
            raise PreconditionNotMetError(
                f"backward runs a second time through {self.name}, whose saved values were let go of after the first; "
                "call backward(retain_graph=True) the first time"
            )
        saved, versions = node.saved
        check_unchanged(self.name, versions)
        for i in self._needed & node.lent.keys() if node.lent else ():
            if (writer := node.overwriter(i)) is not None:
                raise _overwritten(self.name, f"output {i}", writer)
        return (recorded or self._function)(saved, gradients)


def check_unchanged(name: str, versions: Sequence[tuple[Tensor, int]]) -> None:
    """Raise PreconditionNotMetError if a tensor that gradients read was changed in place.

    Args:
        name: Name of the call, for messages.
        versions: Tensors, with the versions that they had.
    """
    for x, version in versions:
        if x._version != version:
            raise _overwritten(name, f"input {x.describe()}", x._written_by)


def _overwritten(name: str, what: str, by: str) -> PreconditionNotMetError:
    return PreconditionNotMetError(
        f"the gradient of {name} needs its {what}, which was changed in place since by {by}; use the operation that "
        "makes a new tensor, change it after backward(), or change a copy (x.clone())"
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
