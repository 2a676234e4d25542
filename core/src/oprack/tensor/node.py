"""Nodes of the record of eager calls: what backward walks."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oprack.autograd.backward_rule import BackwardRule
    from oprack.autograd.custom_rule import CustomRule
    from oprack.tensor.eager_tensor import Tensor


class Node:
    """One recorded call.

    Attributes:
        rule: How its gradients are computed.
        next: Where the gradients of its inputs go, in order of rule.wrt.
        saved: What the gradient ops read; None once it was freed.
        shapes: Shapes of its outputs, when it has several.
        versions: Versions of saved inputs whose memory is shared or was written to.
        overwritten: Outputs that were written to since, and by which op.
        hooks: Functions of a gradient, by output.
    """

    # A call makes a node, so what few calls need is in the dict that is made on first use; the defaults are on the
    # class.
    __slots__ = ("__dict__", "next", "rule", "saved")
    rule: BackwardRule | CustomRule
    next: tuple[Any, ...]
    saved: Any
    hooks: dict[int, dict[int, Any]] | None = None
    shapes: tuple[Any, ...] = ()
    versions: dict[int, int] = {}
    overwritten: dict[int, str] = {}

    @property
    def name(self) -> str:
        """Type of the op that was called."""
        return self.rule.name

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
    """The end of a path of gradients: a tensor that is no result of a recorded call."""

    __slots__ = ("__weakref__", "hooks", "tensor")

    def __init__(self, tensor: Tensor) -> None:
        # The record may outlive a tensor that nobody uses any more: then nobody reads its gradient.
        self.tensor = weakref.ref(tensor)
        self.hooks: dict[int, dict[int, Any]] | None = None

    def __repr__(self) -> str:
        return "<a leaf>"


def split_edge(edge: Any) -> tuple[Any, int]:
    """(node or leaf, which of its outputs)."""
    return (edge.node, edge.index) if type(edge) is Edge else (edge, 0)
