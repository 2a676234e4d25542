"""Nodes and edges of the autograd graph, which eager calls record and backward walks."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oprack.autograd.backward_rule import BackwardRule
    from oprack.autograd.custom_rule import CustomRule
    from oprack.tensor.eager_tensor import Tensor
    from oprack.tensor.memory import Memory


class Node:
    """One recorded call.

    Attributes:
        rule: How its gradients are computed.
        next: Where the gradients of its inputs go, in order of rule.wrt.
        saved: What the gradient ops read; None once it was freed.
        shapes: Shapes of its outputs, when it has several.
        versions: Versions that saved inputs had when they were saved, for those whose memory is shared or was written.
        lent: Outputs whose memory others may write to, or that were overwritten: the memory, and the version that the
            output is.
        hooks: Hooks of the gradients, by output.
    """

    # Every recorded call creates a node, so only what every node has gets a slot. The rest goes into __dict__, which
    # Python creates on the first assignment; the defaults below are on the class.
    __slots__ = ("__dict__", "next", "rule", "saved")
    rule: BackwardRule | CustomRule
    next: tuple[Any, ...]
    saved: Any
    hooks: dict[int, dict[int, Any]] | None = None
    shapes: tuple[Any, ...] = ()
    versions: dict[int, int] = {}
    lent: dict[int, tuple[Memory, int]] = {}

    @property
    def name(self) -> str:
        """Type of the op that was called."""
        return self.rule.name

    def overwriter(self, j: int) -> str | None:
        """What changed output j in place since it was computed; None where nothing did.

        Args:
            j: Number of the output.
        """
        memory, version = self.lent.get(j, (None, 0))
        return None if memory is None or memory.version == version else memory.writer

    def __repr__(self) -> str:
        return f"<gradient of {self.name}>"


class Edge:
    """One of several outputs of a recorded call."""

    __slots__ = ("index", "node")

    def __init__(self, node: Node, index: int) -> None:
        self.node, self.index = node, index

    def __repr__(self) -> str:
        return f"<output {self.index} of {self.node!r}>"


class Leaf:
    """A tensor in which gradients accumulate: one that is not the result of a recorded call."""

    __slots__ = ("__weakref__", "hooks", "tensor")

    def __init__(self, tensor: Tensor) -> None:
        # Weak, since the graph may outlive the tensor: when the tensor is gone, nobody can read its gradient.
        self.tensor = weakref.ref(tensor)
        self.hooks: dict[int, dict[int, Any]] | None = None

    def __repr__(self) -> str:
        return "<a leaf>"


def lend(edge: Any, memory: Memory) -> None:
    """Note that an output of a recorded call is on memory that other tensors write to, or that is written to.

    Args:
        edge: The output.
        memory: Its memory.
    """
    node, index = split_edge(edge)
    j = node.rule.outputs[index]
    if j not in node.lent:
        # A new dict rather than an update: the empty default belongs to the class.
        node.lent = node.lent | {j: (memory, memory.version)}


def split_edge(edge: Any) -> tuple[Any, int]:
    """Split an edge into (node or leaf, number of the output)."""
    return (edge.node, edge.index) if type(edge) is Edge else (edge, 0)
